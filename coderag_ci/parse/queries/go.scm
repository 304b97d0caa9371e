; definitions: functions
(function_declaration name: (identifier) @name) @definition.function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @scope
    (generic_type type: (type_identifier) @scope)
    (pointer_type [
      (type_identifier) @scope
      (generic_type type: (type_identifier) @scope)])]))
  name: (field_identifier) @name) @definition.method
(source_file [
  (var_declaration (var_spec
    name: (identifier) @name value: (expression_list . (func_literal)))) @definition.function
  (var_declaration (var_spec_list (var_spec
    name: (identifier) @name value: (expression_list . (func_literal))) @definition.function))])

; definitions: types; a declaration that holds one type is captured whole
[(type_spec name: (type_identifier) @name type: (struct_type))
 (type_declaration . (type_spec name: (type_identifier) @name type: (struct_type)) .)
] @definition.struct
[(type_spec name: (type_identifier) @name type: (interface_type))
 (type_declaration . (type_spec name: (type_identifier) @name type: (interface_type)) .)
] @definition.interface
[(type_spec name: (type_identifier) @name type: [
   (type_identifier) (qualified_type) (generic_type) (pointer_type) (array_type) (slice_type)
   (map_type) (channel_type) (function_type) (parenthesized_type)])
 (type_declaration . (type_spec name: (type_identifier) @name type: [
   (type_identifier) (qualified_type) (generic_type) (pointer_type) (array_type) (slice_type)
   (map_type) (channel_type) (function_type) (parenthesized_type)]) .)
 (type_alias name: (type_identifier) @name)
 (type_declaration . (type_alias name: (type_identifier) @name) .)
] @definition.type

; definitions: names
; by position: with the field, only the first name of `const A, B = 1, 2` matches
(source_file (const_declaration (const_spec (identifier) @name) @definition.constant))
(source_file (var_declaration [
  (var_spec name: (identifier) @name) @definition.variable
  (var_spec_list (var_spec name: (identifier) @name) @definition.variable)]))
[(field_declaration name: (field_identifier) @name)
 (method_elem name: (field_identifier) @name)
] @definition.field

; references: calls; a call with type arguments parses as a conversion
[(call_expression function: [
   (identifier) @reference.call
   (selector_expression field: (field_identifier) @reference.call)
   (index_expression operand: [
     (identifier) @reference.call
     (selector_expression field: (field_identifier) @reference.call)])])
 (type_conversion_expression type: (generic_type type: [
   (type_identifier) @reference.call
   (qualified_type name: (type_identifier) @reference.call)]))]

; references: writes; a key in a composite literal that is no map names a field
((assignment_statement left: (expression_list [
   (identifier) @reference.write
   (selector_expression field: (field_identifier) @reference.write)]))
 (#not-eq? @reference.write "_"))
[(inc_statement [
   (identifier) @reference.write
   (selector_expression field: (field_identifier) @reference.write)])
 (dec_statement [
   (identifier) @reference.write
   (selector_expression field: (field_identifier) @reference.write)])
 (composite_literal
   type: [(type_identifier) (qualified_type) (generic_type)]
   body: (literal_value (keyed_element key: (literal_element (identifier) @reference.write))))
 (literal_element (literal_value
   (keyed_element key: (literal_element (identifier) @reference.write))))]

; references: imports
(import_spec name: (package_identifier) @reference.import)

; references: types; the names of definitions are taken out by the reader
(type_identifier) @reference.type

; references: reads
[(selector_expression field: (field_identifier) @reference.read)
 (selector_expression operand: (identifier) @reference.read)
 (argument_list (identifier) @reference.read)
 (assignment_statement right: (expression_list (identifier) @reference.read))
 (binary_expression (identifier) @reference.read)
 (const_spec value: (expression_list (identifier) @reference.read))
 (expression_case value: (expression_list (identifier) @reference.read))
 (expression_switch_statement value: (identifier) @reference.read)
 (for_clause condition: (identifier) @reference.read)
 (for_statement (identifier) @reference.read)
 (if_statement condition: (identifier) @reference.read)
 (index_expression (identifier) @reference.read)
 (literal_element (identifier) @reference.read)
 (parenthesized_expression (identifier) @reference.read)
 (range_clause right: (identifier) @reference.read)
 (return_statement (expression_list (identifier) @reference.read))
 (send_statement (identifier) @reference.read)
 (short_var_declaration right: (expression_list (identifier) @reference.read))
 (slice_expression (identifier) @reference.read)
 (type_assertion_expression operand: (identifier) @reference.read)
 (type_conversion_expression operand: (identifier) @reference.read)
 (type_switch_statement value: (identifier) @reference.read)
 (unary_expression operand: (identifier) @reference.read)
 (var_spec value: (expression_list (identifier) @reference.read))
 (variadic_argument (identifier) @reference.read)]

; relations
(package_clause (package_identifier) @module) @relation.package
(import_spec name: [(package_identifier) (blank_identifier)]? @alias path: (_) @module) @relation.module
(import_spec name: (dot) path: (_) @module) @relation.star
[(type_spec name: (type_identifier) @module
   type: (struct_type (field_declaration_list (field_declaration !name type: (_) @imported))))
 (type_spec name: (type_identifier) @module
   type: (interface_type (type_elem [(type_identifier) (qualified_type)] @imported)))
] @relation.base

; definitions
[(namespace_definition name: (namespace_identifier) @name)
 (namespace_definition name: (nested_namespace_specifier
   . (namespace_identifier) @scope . (namespace_identifier) @name .))
 (namespace_definition name: (nested_namespace_specifier
   (nested_namespace_specifier)) @name)] @definition.module
[(class_specifier name: [
   (type_identifier) @name
   (template_type name: (type_identifier) @name)
   (qualified_identifier scope: (namespace_identifier) @scope name: [
     (type_identifier) @name
     (template_type name: (type_identifier) @name)])]
   body: (field_declaration_list))
 (template_declaration (class_specifier
   name: [
     (type_identifier) @name
     (template_type name: (type_identifier) @name)
     (qualified_identifier scope: (namespace_identifier) @scope
       name: (template_type name: (type_identifier) @name))]
   body: (field_declaration_list)))
 (declaration type: (class_specifier name: (type_identifier) @name body: (field_declaration_list)))
 ; `class EXPORT Name {`: the macro is taken for the class
 (function_definition type: [(class_specifier !body) (struct_specifier !body)]
   declarator: (identifier) @name)] @definition.class
[(struct_specifier name: [
   (type_identifier) @name
   (template_type name: (type_identifier) @name)
   (qualified_identifier scope: (namespace_identifier) @scope name: [
     (type_identifier) @name
     (template_type name: (type_identifier) @name)])]
   body: (field_declaration_list))
 (union_specifier name: (type_identifier) @name body: (field_declaration_list))
 (template_declaration (struct_specifier
   name: [
     (type_identifier) @name
     (template_type name: (type_identifier) @name)
     (qualified_identifier scope: (namespace_identifier) @scope
       name: (template_type name: (type_identifier) @name))]
   body: (field_declaration_list)))
 (declaration type: [
   (struct_specifier name: (type_identifier) @name body: (field_declaration_list))
   (union_specifier name: (type_identifier) @name body: (field_declaration_list))])
 (type_definition type: [
   (struct_specifier name: (type_identifier) @name body: (field_declaration_list))
   (union_specifier name: (type_identifier) @name body: (field_declaration_list))])
 (type_definition type: [(struct_specifier !name) (union_specifier !name)]
   declarator: (type_identifier) @name)] @definition.struct
((type_definition
   type: [
     (struct_specifier name: (type_identifier) @_tag body: (field_declaration_list))
     (union_specifier name: (type_identifier) @_tag body: (field_declaration_list))]
   declarator: (type_identifier) @name) @definition.struct
  (#not-eq? @name @_tag))
[(enum_specifier name: (type_identifier) @name body: (enumerator_list))
 (type_definition type: (enum_specifier name: (type_identifier) @name body: (enumerator_list)))
 (type_definition type: (enum_specifier !name) declarator: (type_identifier) @name)] @definition.enum
((type_definition
   type: (enum_specifier name: (type_identifier) @_tag body: (enumerator_list))
   declarator: (type_identifier) @name) @definition.enum
  (#not-eq? @name @_tag))
[(alias_declaration name: (type_identifier) @name)
 (template_declaration (alias_declaration name: (type_identifier) @name))
 (template_declaration (concept_definition name: (identifier) @name))
 (type_definition
   type: [
     (type_identifier) (primitive_type) (sized_type_specifier) (qualified_identifier)
     (template_type) (struct_specifier !body) (union_specifier !body) (enum_specifier !body)]
   declarator: [
     (type_identifier) @name
     (primitive_type) @name
     (pointer_declarator declarator: (type_identifier) @name)
     (array_declarator declarator: (type_identifier) @name)
     (function_declarator declarator: [
       (type_identifier) @name
       (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name))])])] @definition.type
; functions and methods in their class
(function_definition type: (_) declarator: [
  (function_declarator declarator: [
    (identifier) @name (field_identifier) @name (operator_name) @name
    (template_function name: (identifier) @name)])
  (reference_declarator (function_declarator declarator: [
    (identifier) @name (field_identifier) @name (operator_name) @name]))
  (pointer_declarator declarator: [
    (function_declarator declarator: [
      (identifier) @name (field_identifier) @name (operator_name) @name])
    (pointer_declarator declarator: (function_declarator declarator: [
      (identifier) @name (field_identifier) @name]))])]) @definition.function
(template_declaration (function_definition declarator: [
  (function_declarator declarator: [
    (identifier) @name (field_identifier) @name (operator_name) @name
    (template_function name: (identifier) @name)])
  (reference_declarator (function_declarator declarator: [
    (identifier) @name (field_identifier) @name (operator_name) @name]))
  (pointer_declarator declarator: (function_declarator declarator: [
    (identifier) @name (field_identifier) @name (operator_name) @name]))])) @definition.function
; without a type: constructors, destructors, conversions, and tests of gtest
((function_definition !type declarator: (function_declarator declarator: (identifier) @name)) @definition.function
  (#not-match? @name "^(TYPED_)?TEST(_[FP])?$"))
((function_definition !type declarator: (function_declarator
   declarator: (identifier) @_macro
   parameters: (parameter_list
     . (parameter_declaration type: (type_identifier) @scope !declarator)
     . (parameter_declaration type: (type_identifier) @name !declarator)))) @definition.function
  (#match? @_macro "^(TYPED_)?TEST(_[FP])?$"))
[(function_definition declarator: (function_declarator declarator: (destructor_name) @name))
 (function_definition declarator: (operator_cast "operator" @name))] @definition.method
; methods outside their class, or functions outside their namespace
(function_definition declarator: [
  (function_declarator declarator: (qualified_identifier
    scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
    name: [
      (identifier) @name (destructor_name) @name (operator_name) @name
      (qualified_identifier
        scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
        name: [
          (identifier) @name (destructor_name) @name (operator_name) @name
          (qualified_identifier
            scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
            name: [(identifier) (destructor_name) (operator_name)] @name)])]))
  (reference_declarator (function_declarator declarator: (qualified_identifier
    scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
    name: [
      (identifier) @name (operator_name) @name
      (qualified_identifier
        scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
        name: [(identifier) (operator_name)] @name)])))
  (pointer_declarator declarator: [
    (function_declarator declarator: (qualified_identifier
      scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
      name: [
        (identifier) @name (operator_name) @name
        (qualified_identifier
          scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
          name: [
            (identifier) @name (operator_name) @name
            (qualified_identifier
              scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
              name: [(identifier) (operator_name)] @name)])]))
    (pointer_declarator declarator: (function_declarator declarator: (qualified_identifier
      scope: (namespace_identifier) @scope name: (identifier) @name)))])
  (qualified_identifier
    scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
    name: (operator_cast "operator" @name))]) @definition.method
(template_declaration (function_definition declarator: [
  (function_declarator declarator: (qualified_identifier
    scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
    name: [
      (identifier) @name (destructor_name) @name (operator_name) @name
      (qualified_identifier
        scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
        name: [(identifier) (destructor_name) (operator_name)] @name)]))
  (reference_declarator (function_declarator declarator: (qualified_identifier
    scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
    name: [(identifier) (operator_name)] @name)))
  (pointer_declarator declarator: (function_declarator declarator: (qualified_identifier
    scope: [(namespace_identifier) @scope (template_type name: (type_identifier) @scope)]
    name: [(identifier) (operator_name)] @name)))])) @definition.method
(preproc_function_def name: (identifier) @name) @definition.macro
((preproc_def name: (identifier) @name) @definition.constant
  (#not-match? @name "_H(PP|XX|H)?_*$"))
(enumerator name: (identifier) @name) @definition.constant
(field_declaration declarator: [
  (field_identifier) @name
  (array_declarator declarator: [
    (field_identifier) @name
    (array_declarator declarator: (field_identifier) @name)])
  (reference_declarator (field_identifier) @name)
  (pointer_declarator declarator: [
    (field_identifier) @name
    (array_declarator declarator: (field_identifier) @name)
    (pointer_declarator declarator: (field_identifier) @name)
    (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (field_identifier) @name)))])
  (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (field_identifier) @name)))]) @definition.field
; globals of the file, of a conditional or of a namespace
([(translation_unit (declaration declarator: [
    (identifier) @name
    (array_declarator declarator: (identifier) @name)
    (pointer_declarator declarator: (identifier) @name)
    (init_declarator declarator: [
      (identifier) @name
      (qualified_identifier scope: (namespace_identifier) @scope name: (identifier) @name)
      (array_declarator declarator: (identifier) @name)
      (reference_declarator (identifier) @name)
      (pointer_declarator declarator: [
        (identifier) @name
        (array_declarator declarator: (identifier) @name)])])]) @definition.variable)
  (declaration_list (declaration declarator: [
    (identifier) @name
    (array_declarator declarator: (identifier) @name)
    (pointer_declarator declarator: (identifier) @name)
    (init_declarator declarator: [
      (identifier) @name
      (array_declarator declarator: (identifier) @name)
      (reference_declarator (identifier) @name)
      (pointer_declarator declarator: [
        (identifier) @name
        (array_declarator declarator: (identifier) @name)])])]) @definition.variable)
  (translation_unit (preproc_ifdef (declaration declarator: [
    (identifier) @name
    (init_declarator declarator: (identifier) @name)]) @definition.variable))
  (template_declaration (declaration declarator: (init_declarator
    declarator: (identifier) @name)) @definition.variable)]
  (#not-match? @definition.variable "^extern\\s"))

; references
(call_expression function: [
  (identifier) @reference.call
  (template_function name: (identifier) @reference.call)
  (field_expression field: [
    (field_identifier) @reference.call
    (template_method name: (field_identifier) @reference.call)
    (dependent_name (template_method name: (field_identifier) @reference.call))])
  (qualified_identifier name: [
    (identifier) @reference.call
    (template_function name: (identifier) @reference.call)
    (qualified_identifier name: [
      (identifier) @reference.call
      (template_function name: (identifier) @reference.call)
      (qualified_identifier name: [
        (identifier) @reference.call
        (template_function name: (identifier) @reference.call)])])])])
[(new_expression type: [
   (type_identifier) @reference.call
   (template_type name: (type_identifier) @reference.call)
   (qualified_identifier name: [
     (type_identifier) @reference.call
     (template_type name: (type_identifier) @reference.call)])])
 (compound_literal_expression type: [
   (type_identifier) @reference.call
   (template_type name: (type_identifier) @reference.call)
   (qualified_identifier name: (type_identifier) @reference.call)])]
[(assignment_expression left: [
   (identifier) @reference.write
   (qualified_identifier name: (identifier) @reference.write)
   (field_expression field: (field_identifier) @reference.write)])
 (update_expression argument: [
   (identifier) @reference.write
   (qualified_identifier name: (identifier) @reference.write)
   (field_expression field: (field_identifier) @reference.write)])
 (field_initializer (field_identifier) @reference.write)
 (field_designator (field_identifier) @reference.write)]
(preproc_include path: (string_literal (string_content) @reference.import))
(preproc_include path: (system_lib_string) @reference.import)
(using_declaration [
  (identifier) @reference.import
  (qualified_identifier name: [
    (identifier) @reference.import
    (qualified_identifier name: (identifier) @reference.import)])])
(type_identifier) @reference.type
(qualified_identifier scope: (namespace_identifier) @reference.type)
(qualified_identifier name: (identifier) @reference.read)
(field_expression field: (field_identifier) @reference.read)
[(argument_list (identifier) @reference.read)
 (binary_expression (identifier) @reference.read)
 (assignment_expression right: (identifier) @reference.read)
 (init_declarator value: (identifier) @reference.read)
 (initializer_list (identifier) @reference.read)
 (return_statement (identifier) @reference.read)
 (case_statement value: (identifier) @reference.read)
 (conditional_expression (identifier) @reference.read)
 (pointer_expression argument: (identifier) @reference.read)
 (field_declaration default_value: (identifier) @reference.read)
 (field_expression argument: (identifier) @reference.read)
 (unary_expression argument: (identifier) @reference.read)
 (parenthesized_expression (identifier) @reference.read)
 (condition_clause value: (identifier) @reference.read)
 (comma_expression (identifier) @reference.read)
 (cast_expression value: (identifier) @reference.read)
 (subscript_expression argument: (identifier) @reference.read)
 (subscript_argument_list (identifier) @reference.read)
 (initializer_pair value: (identifier) @reference.read)
 (optional_parameter_declaration default_value: (identifier) @reference.read)
 (array_declarator size: (identifier) @reference.read)
 (enumerator value: (identifier) @reference.read)
 (for_range_loop right: (identifier) @reference.read)
 (lambda_capture_specifier (identifier) @reference.read)
 (lambda_capture_initializer right: (identifier) @reference.read)
 (throw_statement (identifier) @reference.read)
 (delete_expression (identifier) @reference.read)
 (co_return_statement (identifier) @reference.read)
 (co_await_expression argument: (identifier) @reference.read)
 (preproc_defined (identifier) @reference.read)
 (preproc_ifdef name: (identifier) @reference.read)]

; relations
(preproc_include path: [(string_literal) (system_lib_string)] @module) @relation.include
[(class_specifier name: (_) @module (base_class_clause [
   (type_identifier) (qualified_identifier) (template_type)] @imported))
 (struct_specifier name: (_) @module (base_class_clause [
   (type_identifier) (qualified_identifier) (template_type)] @imported))] @relation.base

; definitions
[(function_item name: (identifier) @name)
 (function_signature_item name: (identifier) @name)] @definition.function
[(struct_item name: (type_identifier) @name)
 (union_item name: (type_identifier) @name)] @definition.struct
(enum_item name: (type_identifier) @name) @definition.enum
(trait_item name: (type_identifier) @name) @definition.trait
(impl_item type: [
  (type_identifier) @name
  (generic_type type: [
    (type_identifier) @name
    (scoped_type_identifier name: (type_identifier) @name)])
  (scoped_type_identifier name: (type_identifier) @name)
  (reference_type type: [
    (type_identifier) @name
    (generic_type type: (type_identifier) @name)
    (scoped_type_identifier name: (type_identifier) @name)])
  (dynamic_type trait: [
    (type_identifier) @name
    (scoped_type_identifier name: (type_identifier) @name)])
  [(array_type) (function_type) (pointer_type) (primitive_type) (tuple_type) (unit_type)] @name
]) @definition.impl
(mod_item name: (identifier) @name body: (declaration_list)) @definition.module
(macro_definition name: (identifier) @name) @definition.macro
[(source_file (type_item name: (type_identifier) @name) @definition.type)
 (mod_item body: (declaration_list
   (type_item name: (type_identifier) @name) @definition.type))]
[(const_item name: (identifier) @name)
 (static_item name: (identifier) @name)] @definition.constant
[(field_declaration name: (field_identifier) @name)
 (enum_variant name: (identifier) @name)
 (associated_type name: (type_identifier) @name)
 (impl_item body: (declaration_list (type_item name: (type_identifier) @name)))
] @definition.field

; references: calls; in a macro's arguments a name before a group is one
[(call_expression function: [
   (identifier) @reference.call
   (field_expression field: (field_identifier) @reference.call)
   (scoped_identifier name: (identifier) @reference.call)
   (generic_function function: [
     (identifier) @reference.call
     (field_expression field: (field_identifier) @reference.call)
     (scoped_identifier name: (identifier) @reference.call)])])
 (macro_invocation macro: [
   (identifier) @reference.call
   (scoped_identifier name: (identifier) @reference.call)])
 (attribute [
   (identifier) @reference.call
   (scoped_identifier name: (identifier) @reference.call)])
 (token_tree (identifier) @reference.call . (token_tree "("))]

; references: writes
[(assignment_expression left: [
   (identifier) @reference.write
   (field_expression field: (field_identifier) @reference.write)])
 (compound_assignment_expr left: [
   (identifier) @reference.write
   (field_expression field: (field_identifier) @reference.write)])
 (field_initializer field: (field_identifier) @reference.write)]

; references: imports
[(use_declaration argument: [
   (identifier) @reference.import
   (scoped_identifier name: (identifier) @reference.import)])
 (use_list [
   (identifier) @reference.import
   (scoped_identifier name: (identifier) @reference.import)])
 (scoped_use_list path: [
   (identifier) @reference.import
   (scoped_identifier name: (identifier) @reference.import)])
 (use_as_clause path: [
   (identifier) @reference.import
   (scoped_identifier name: (identifier) @reference.import)])
 (use_wildcard [
   (identifier) @reference.import
   (scoped_identifier name: (identifier) @reference.import)])
 (extern_crate_declaration name: (identifier) @reference.import)
 (mod_item name: (identifier) @reference.import !body)]

; references: types; the names of definitions are taken out by the reader
(type_identifier) @reference.type
(attribute (identifier) @_derive arguments: (token_tree (identifier) @reference.type)
  (#eq? @_derive "derive"))

; references: reads
[(field_expression field: (field_identifier) @reference.read)
 (field_expression value: (identifier) @reference.read)
 (field_pattern name: [
   (field_identifier) (shorthand_field_identifier)] @reference.read)
 (scoped_identifier path: (identifier) @reference.read)
 (scoped_identifier name: (identifier) @reference.read)
 (scoped_type_identifier path: (identifier) @reference.read)
 (arguments (identifier) @reference.read)
 (array_expression (identifier) @reference.read)
 (assignment_expression right: (identifier) @reference.read)
 (await_expression (identifier) @reference.read)
 (base_field_initializer (identifier) @reference.read)
 (binary_expression (identifier) @reference.read)
 (block (identifier) @reference.read)
 (break_expression (identifier) @reference.read)
 (closure_expression body: (identifier) @reference.read)
 (compound_assignment_expr right: (identifier) @reference.read)
 (const_item value: (identifier) @reference.read)
 (field_initializer value: (identifier) @reference.read)
 (for_expression value: (identifier) @reference.read)
 (if_expression condition: (identifier) @reference.read)
 (index_expression (identifier) @reference.read)
 (let_condition value: (identifier) @reference.read)
 (let_declaration value: (identifier) @reference.read)
 (match_arm value: (identifier) @reference.read)
 (match_expression value: (identifier) @reference.read)
 (parenthesized_expression (identifier) @reference.read)
 (range_expression (identifier) @reference.read)
 (reference_expression value: (identifier) @reference.read)
 (return_expression (identifier) @reference.read)
 (shorthand_field_initializer (identifier) @reference.read)
 (static_item value: (identifier) @reference.read)
 (token_tree (identifier) @reference.read)
 (try_expression (identifier) @reference.read)
 (tuple_expression (identifier) @reference.read)
 (tuple_struct_pattern type: (identifier) @reference.read)
 (type_cast_expression value: (identifier) @reference.read)
 (unary_expression (identifier) @reference.read)
 (while_expression condition: (identifier) @reference.read)]
((match_pattern (identifier) @reference.read) (#match? @reference.read "^[A-Z]"))

; relations
(use_declaration) @path @relation.path
[(impl_item trait: (_) @imported type: (_) @module)
 (trait_item name: (_) @module bounds: (trait_bounds (_) @imported))] @relation.base

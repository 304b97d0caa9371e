; definitions
(function_definition declarator: [
  (function_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (pointer_declarator declarator: [
    (function_declarator declarator: (identifier) @name)
    (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))]))
  (function_declarator declarator: (parenthesized_declarator (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @name))))
  (parenthesized_declarator (identifier) @name)]) @definition.function
[(struct_specifier name: (type_identifier) @name body: (field_declaration_list))
 (union_specifier name: (type_identifier) @name body: (field_declaration_list))] @definition.struct
(enum_specifier name: (type_identifier) @name body: (enumerator_list)) @definition.enum
; a tag that a larger declaration defines: the unit is all of that
[(type_definition type: [
   (struct_specifier name: (type_identifier) @name body: (field_declaration_list))
   (union_specifier name: (type_identifier) @name body: (field_declaration_list))])
 (declaration type: [
   (struct_specifier name: (type_identifier) @name body: (field_declaration_list))
   (union_specifier name: (type_identifier) @name body: (field_declaration_list))])] @definition.struct
[(type_definition type: (enum_specifier name: (type_identifier) @name body: (enumerator_list)))
 (declaration type: (enum_specifier name: (type_identifier) @name body: (enumerator_list)))] @definition.enum
; the alias, where it is not the tag again
((type_definition
   type: [
     (struct_specifier name: (type_identifier) @_tag body: (field_declaration_list))
     (union_specifier name: (type_identifier) @_tag body: (field_declaration_list))]
   declarator: (type_identifier) @name) @definition.struct
  (#not-eq? @name @_tag))
((type_definition
   type: (enum_specifier name: (type_identifier) @_tag body: (enumerator_list))
   declarator: (type_identifier) @name) @definition.enum
  (#not-eq? @name @_tag))
(type_definition
  type: [(struct_specifier !name) (union_specifier !name)]
  declarator: (type_identifier) @name) @definition.struct
(type_definition type: (enum_specifier !name) declarator: (type_identifier) @name) @definition.enum
(type_definition
  type: [
    (type_identifier) (primitive_type) (sized_type_specifier) (macro_type_specifier)
    (struct_specifier !body) (union_specifier !body) (enum_specifier !body)]
  declarator: [
    (type_identifier) @name
    (primitive_type) @name
    (pointer_declarator declarator: (type_identifier) @name)
    (array_declarator declarator: (type_identifier) @name)
    (function_declarator declarator: [
      (type_identifier) @name
      (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name))])]) @definition.type
(preproc_function_def name: (identifier) @name) @definition.macro
((preproc_def name: (identifier) @name) @definition.constant
  (#not-match? @name "_H_*$"))
(enumerator name: (identifier) @name) @definition.constant
(field_declaration declarator: [
  (field_identifier) @name
  (array_declarator declarator: [
    (field_identifier) @name
    (array_declarator declarator: (field_identifier) @name)])
  (pointer_declarator declarator: [
    (field_identifier) @name
    (array_declarator declarator: (field_identifier) @name)
    (pointer_declarator declarator: (field_identifier) @name)
    (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (field_identifier) @name)))])
  (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (field_identifier) @name)))]) @definition.field
; globals, at the top or in a conditional there; an extern one is defined elsewhere
((translation_unit [
   (declaration declarator: [
     (identifier) @name
     (array_declarator declarator: (identifier) @name)
     (pointer_declarator declarator: (identifier) @name)
     (init_declarator declarator: [
       (identifier) @name
       (array_declarator declarator: [
         (identifier) @name
         (array_declarator declarator: (identifier) @name)])
       (pointer_declarator declarator: [
         (identifier) @name
         (array_declarator declarator: (identifier) @name)])
       (function_declarator declarator: (parenthesized_declarator
         (pointer_declarator declarator: (identifier) @name)))])]) @definition.variable
   (preproc_ifdef (declaration declarator: [
     (identifier) @name
     (array_declarator declarator: (identifier) @name)
     (pointer_declarator declarator: (identifier) @name)
     (init_declarator declarator: [
       (identifier) @name
       (array_declarator declarator: (identifier) @name)
       (pointer_declarator declarator: [
         (identifier) @name
         (array_declarator declarator: (identifier) @name)])])]) @definition.variable)])
  (#not-match? @definition.variable "^extern\\s"))

; references
(call_expression function: [
  (identifier) @reference.call
  (field_expression field: (field_identifier) @reference.call)
  (parenthesized_expression (pointer_expression argument: [
    (identifier) @reference.call
    (field_expression field: (field_identifier) @reference.call)]))])
(assignment_expression left: [
  (identifier) @reference.write
  (field_expression field: (field_identifier) @reference.write)])
(update_expression argument: [
  (identifier) @reference.write
  (field_expression field: (field_identifier) @reference.write)])
(field_designator (field_identifier) @reference.write)
(preproc_include path: (string_literal (string_content) @reference.import))
(preproc_include path: (system_lib_string) @reference.import)
(type_identifier) @reference.type
(field_expression field: (field_identifier) @reference.read)
(offsetof_expression member: (field_identifier) @reference.read)
[(argument_list (identifier) @reference.read)
 (field_expression argument: (identifier) @reference.read)
 (binary_expression (identifier) @reference.read)
 (unary_expression argument: (identifier) @reference.read)
 (pointer_expression argument: (identifier) @reference.read)
 (conditional_expression (identifier) @reference.read)
 (parenthesized_expression (identifier) @reference.read)
 (comma_expression (identifier) @reference.read)
 (cast_expression value: (identifier) @reference.read)
 (subscript_expression (identifier) @reference.read)
 (assignment_expression right: (identifier) @reference.read)
 (init_declarator value: (identifier) @reference.read)
 (initializer_list (identifier) @reference.read)
 (initializer_pair value: (identifier) @reference.read)
 (subscript_designator (identifier) @reference.read)
 (array_declarator size: (identifier) @reference.read)
 (enumerator value: (identifier) @reference.read)
 (return_statement (identifier) @reference.read)
 (case_statement value: (identifier) @reference.read)
 (preproc_defined (identifier) @reference.read)
 (preproc_ifdef name: (identifier) @reference.read)]

; relations
(preproc_include path: [(string_literal) (system_lib_string)] @module) @relation.include

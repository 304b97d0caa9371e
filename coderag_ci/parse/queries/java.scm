; definitions
[(class_declaration name: (identifier) @name)
 (record_declaration name: (identifier) @name)] @definition.class
[(interface_declaration name: (identifier) @name)
 (annotation_type_declaration name: (identifier) @name)] @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(method_declaration name: (identifier) @name) @definition.function
[(constructor_declaration name: (identifier) @name)
 (compact_constructor_declaration name: (identifier) @name)] @definition.method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.field
(record_declaration parameters: (formal_parameters
  (formal_parameter name: (identifier) @name) @definition.field))
(annotation_type_element_declaration name: (identifier) @name) @definition.field
[(constant_declaration declarator: (variable_declarator name: (identifier) @name))
 (enum_constant name: (identifier) @name)] @definition.constant

; references
(method_invocation name: (identifier) @reference.call)
(object_creation_expression type: [
  (type_identifier) @reference.call
  (scoped_type_identifier (type_identifier) @reference.call .)
  (generic_type [
    (type_identifier) @reference.call
    (scoped_type_identifier (type_identifier) @reference.call .)])])
(assignment_expression left: [
  (identifier) @reference.write
  (field_access field: (identifier) @reference.write)])
(update_expression [
  (identifier) @reference.write
  (field_access field: (identifier) @reference.write)])
(import_declaration [
  (identifier) @reference.import
  (scoped_identifier name: (identifier) @reference.import)])
(type_identifier) @reference.type
[(marker_annotation name: (identifier) @reference.type)
 (annotation name: (identifier) @reference.type)
 (record_pattern (identifier) @reference.type)]
(field_access field: (identifier) @reference.read)
[(argument_list (identifier) @reference.read)
 (method_invocation object: (identifier) @reference.read)
 (field_access object: (identifier) @reference.read)
 (method_reference (identifier) @reference.read)
 (array_access (identifier) @reference.read)
 (array_initializer (identifier) @reference.read)
 (dimensions_expr (identifier) @reference.read)
 (assignment_expression right: (identifier) @reference.read)
 (variable_declarator value: (identifier) @reference.read)
 (resource value: (identifier) @reference.read)
 (enhanced_for_statement value: (identifier) @reference.read)
 (binary_expression (identifier) @reference.read)
 (unary_expression operand: (identifier) @reference.read)
 (ternary_expression (identifier) @reference.read)
 (cast_expression value: (identifier) @reference.read)
 (instanceof_expression left: (identifier) @reference.read)
 (parenthesized_expression (identifier) @reference.read)
 (lambda_expression body: (identifier) @reference.read)
 (expression_statement (identifier) @reference.read)
 (return_statement (identifier) @reference.read)
 (yield_statement (identifier) @reference.read)
 (throw_statement (identifier) @reference.read)
 (assert_statement (identifier) @reference.read)
 (switch_label (identifier) @reference.read)
 (annotation_argument_list (identifier) @reference.read)
 (element_value_pair value: (identifier) @reference.read)]

; relations
(package_declaration [(identifier) (scoped_identifier)] @module) @relation.package
(import_declaration [(identifier) (scoped_identifier)] @path .) @relation.path
(import_declaration [(identifier) (scoped_identifier)] @module (asterisk)) @relation.star
[(class_declaration name: (_) @module superclass: (superclass (_) @imported))
 (class_declaration name: (_) @module
   interfaces: (super_interfaces (type_list (_) @imported)))
 (record_declaration name: (_) @module
   interfaces: (super_interfaces (type_list (_) @imported)))
 (enum_declaration name: (_) @module
   interfaces: (super_interfaces (type_list (_) @imported)))
 (interface_declaration name: (_) @module
   (extends_interfaces (type_list (_) @imported)))] @relation.base

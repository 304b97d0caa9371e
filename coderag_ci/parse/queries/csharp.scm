; definitions
[(class_declaration name: (identifier) @name)
 (record_declaration name: (identifier) @name)] @definition.class
(struct_declaration name: (identifier) @name) @definition.struct
(interface_declaration name: (identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(delegate_declaration name: (identifier) @name) @definition.type
(namespace_declaration name: [(identifier) (qualified_name)] @name) @definition.module
[(method_declaration name: (identifier) @name)
 (local_function_statement name: (identifier) @name)] @definition.function
[(constructor_declaration name: (identifier) @name)
 (destructor_declaration name: (identifier) @name)
 (operator_declaration "operator" @name)
 (conversion_operator_declaration "operator" @name)
 (indexer_declaration "this" @name)] @definition.method
; a property with code is a unit, any other one a name
[(property_declaration name: (identifier) @name
   accessors: (accessor_list (accessor_declaration body: (block))))
 (event_declaration name: (identifier) @name)] @definition.method
(property_declaration name: (identifier) @name) @definition.field
[(field_declaration (variable_declaration (variable_declarator name: (identifier) @name)))
 (event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name)))] @definition.field
(record_declaration (parameter_list (parameter name: (identifier) @name) @definition.field))
(enum_member_declaration name: (identifier) @name) @definition.constant

; references
(invocation_expression function: [
  (identifier) @reference.call
  (generic_name (identifier) @reference.call)
  (member_access_expression name: [
    (identifier) @reference.call
    (generic_name (identifier) @reference.call)])
  (conditional_access_expression (member_binding_expression name: [
    (identifier) @reference.call
    (generic_name (identifier) @reference.call)]))])
(object_creation_expression type: [
  (identifier) @reference.call
  (generic_name (identifier) @reference.call)
  (qualified_name name: [
    (identifier) @reference.call
    (generic_name (identifier) @reference.call)])])
(assignment_expression left: [
  (identifier) @reference.write
  (member_access_expression name: (identifier) @reference.write)
  (tuple_expression (argument [
    (identifier) @reference.write
    (member_access_expression name: (identifier) @reference.write)]))])
(postfix_unary_expression [
  (identifier) @reference.write
  (member_access_expression name: (identifier) @reference.write)] ["++" "--"])
(prefix_unary_expression ["++" "--"] [
  (identifier) @reference.write
  (member_access_expression name: (identifier) @reference.write)])
(using_directive !name [
  (identifier) @reference.import
  (qualified_name name: (identifier) @reference.import)])
(using_directive name: (identifier) [
  (identifier) @reference.import
  (qualified_name name: (identifier) @reference.import)])
(generic_name (identifier) @reference.type)
[(variable_declaration type: [
   (identifier) @reference.type (qualified_name name: (identifier) @reference.type)])
 (parameter type: [
   (identifier) @reference.type (qualified_name name: (identifier) @reference.type)])
 (method_declaration returns: [
   (identifier) @reference.type (qualified_name name: (identifier) @reference.type)])
 (property_declaration type: [
   (identifier) @reference.type (qualified_name name: (identifier) @reference.type)])
 (base_list [
   (identifier) @reference.type (qualified_name name: (identifier) @reference.type)])
 (type_argument_list [
   (identifier) @reference.type (qualified_name name: (identifier) @reference.type)])
 (nullable_type type: [
   (identifier) @reference.type (qualified_name name: (identifier) @reference.type)])
 (array_type type: [
   (identifier) @reference.type (qualified_name name: (identifier) @reference.type)])
 (cast_expression type: [
   (identifier) @reference.type (qualified_name name: (identifier) @reference.type)])
 (attribute name: [
   (identifier) @reference.type (qualified_name name: (identifier) @reference.type)])
 (parameter_list type: (identifier) @reference.type)
 (primary_constructor_base_type type: (identifier) @reference.type)
 (explicit_interface_specifier (identifier) @reference.type)
 (indexer_declaration type: (identifier) @reference.type)
 (operator_declaration type: (identifier) @reference.type)
 (conversion_operator_declaration type: (identifier) @reference.type)
 (event_declaration type: (identifier) @reference.type)
 (delegate_declaration type: (identifier) @reference.type)
 (local_function_statement type: (identifier) @reference.type)
 (type_parameter_constraint type: (identifier) @reference.type)
 (tuple_element type: (identifier) @reference.type)
 (declaration_pattern type: (identifier) @reference.type)
 (recursive_pattern type: (identifier) @reference.type)
 (declaration_expression type: (identifier) @reference.type)
 (foreach_statement type: (identifier) @reference.type)
 (catch_declaration type: (identifier) @reference.type)
 (as_expression right: (identifier) @reference.type)
 (typeof_expression type: (identifier) @reference.type)
 (default_expression type: (identifier) @reference.type)]
(member_access_expression name: (identifier) @reference.read)
(member_binding_expression name: (identifier) @reference.read)
(subpattern . (identifier) @reference.read)
[(argument (identifier) @reference.read .)
 (attribute_argument (identifier) @reference.read .)
 (member_access_expression expression: (identifier) @reference.read)
 (conditional_access_expression condition: (identifier) @reference.read)
 (element_access_expression expression: (identifier) @reference.read)
 (variable_declarator "=" (identifier) @reference.read)
 (parameter "=" (identifier) @reference.read)
 (property_declaration value: (identifier) @reference.read)
 (enum_member_declaration value: (identifier) @reference.read)
 (assignment_expression right: (identifier) @reference.read)
 (binary_expression (identifier) @reference.read)
 (prefix_unary_expression (identifier) @reference.read)
 (postfix_unary_expression (identifier) @reference.read)
 (conditional_expression (identifier) @reference.read)
 (parenthesized_expression (identifier) @reference.read)
 (cast_expression value: (identifier) @reference.read)
 (await_expression (identifier) @reference.read)
 (as_expression left: (identifier) @reference.read)
 (is_pattern_expression expression: (identifier) @reference.read)
 (constant_pattern (identifier) @reference.read)
 (lambda_expression body: (identifier) @reference.read)
 (arrow_expression_clause (identifier) @reference.read)
 (interpolation (identifier) @reference.read)
 (initializer_expression (identifier) @reference.read)
 (array_rank_specifier (identifier) @reference.read)
 (switch_expression (identifier) @reference.read)
 (switch_expression_arm (identifier) @reference.read)
 (return_statement (identifier) @reference.read)
 (yield_statement (identifier) @reference.read)
 (throw_statement (identifier) @reference.read)
 (if_statement condition: (identifier) @reference.read)
 (while_statement condition: (identifier) @reference.read)
 (switch_statement value: (identifier) @reference.read)
 (foreach_statement right: (identifier) @reference.read)
 (lock_statement (identifier) @reference.read)
 (from_clause (identifier) @reference.read .)
 (select_clause (identifier) @reference.read)
 (when_clause (identifier) @reference.read)]

; relations
[(namespace_declaration name: (_) @module)
 (file_scoped_namespace_declaration name: (_) @module)] @relation.package
(using_directive !name [(identifier) (qualified_name)] @module) @relation.star
(using_directive name: (identifier) @alias
  (qualified_name qualifier: (_) @module name: (_) @imported)) @relation.name
[(class_declaration name: (_) @module (base_list (_) @imported))
 (record_declaration name: (_) @module (base_list (_) @imported))
 (struct_declaration name: (_) @module (base_list (_) @imported))
 (interface_declaration name: (_) @module (base_list (_) @imported))] @relation.base

; definitions
(class_declaration name: (name) @name) @definition.class
(interface_declaration name: (name) @name) @definition.interface
(trait_declaration name: (name) @name) @definition.trait
(enum_declaration name: (name) @name) @definition.enum
(namespace_definition name: (namespace_name) @name body: (compound_statement)) @definition.module
(function_definition name: (name) @name) @definition.function
(method_declaration name: (name) @name) @definition.method
[(const_declaration (const_element . (name) @name))
 (enum_case name: (name) @name)] @definition.constant
((function_call_expression function: (name) @_define arguments: (arguments
   . (argument (string (string_content) @name)))) @definition.constant
  (#eq? @_define "define"))
[(property_declaration (property_element name: (variable_name (name) @name)))
 (property_promotion_parameter name: (variable_name (name) @name))] @definition.field
(program (expression_statement (assignment_expression
  left: (variable_name (name) @name)) @definition.variable))

; references
[(function_call_expression function: [
   (name) @reference.call
   (qualified_name (name) @reference.call)
   (relative_name (name) @reference.call)])
 (member_call_expression name: (name) @reference.call)
 (nullsafe_member_call_expression name: (name) @reference.call)
 (scoped_call_expression name: (name) @reference.call)
 (object_creation_expression [
   (name) @reference.call
   (qualified_name (name) @reference.call)])]
[(assignment_expression left: [
   (member_access_expression name: (name) @reference.write)
   (scoped_property_access_expression name: (variable_name (name) @reference.write))
   (subscript_expression . [
     (member_access_expression name: (name) @reference.write)
     (scoped_property_access_expression name: (variable_name (name) @reference.write))])
   (list_literal (member_access_expression name: (name) @reference.write))])
 (augmented_assignment_expression left: [
   (member_access_expression name: (name) @reference.write)
   (scoped_property_access_expression name: (variable_name (name) @reference.write))])
 (update_expression argument: [
   (member_access_expression name: (name) @reference.write)
   (scoped_property_access_expression name: (variable_name (name) @reference.write))])]
[(namespace_use_clause . (name) @reference.import)
 (namespace_use_clause . (qualified_name (name) @reference.import))]
[(named_type [
   (name) @reference.type
   (qualified_name (name) @reference.type)])
 (base_clause [
   (name) @reference.type
   (qualified_name (name) @reference.type)])
 (class_interface_clause [
   (name) @reference.type
   (qualified_name (name) @reference.type)])
 (use_declaration [
   (name) @reference.type
   (qualified_name (name) @reference.type)])
 (attribute [
   (name) @reference.type
   (qualified_name (name) @reference.type)])
 (scoped_call_expression scope: [
   (name) @reference.type
   (qualified_name (name) @reference.type)])
 (scoped_property_access_expression scope: [
   (name) @reference.type
   (qualified_name (name) @reference.type)])
 (class_constant_access_expression . [
   (name) @reference.type
   (qualified_name (name) @reference.type)])
 (binary_expression operator: "instanceof" right: [
   (name) @reference.type
   (qualified_name (name) @reference.type)])]
((class_constant_access_expression (name) @reference.read .)
  (#not-eq? @reference.read "class"))
(member_access_expression name: (name) @reference.read)
(nullsafe_member_access_expression name: (name) @reference.read)
(scoped_property_access_expression name: (variable_name (name) @reference.read))
(global_declaration (variable_name (name) @reference.read))
; constants; a plain variable is local, and is left out
[(argument (name) @reference.read .)
 (assignment_expression right: (name) @reference.read)
 (augmented_assignment_expression right: (name) @reference.read)
 (binary_expression (name) @reference.read)
 (unary_op_expression argument: (name) @reference.read)
 (conditional_expression (name) @reference.read)
 (parenthesized_expression (name) @reference.read)
 (array_element_initializer (name) @reference.read)
 (subscript_expression (name) @reference.read)
 (const_element (name) (name) @reference.read)
 (property_element default_value: (name) @reference.read)
 (simple_parameter default_value: (name) @reference.read)
 (property_promotion_parameter default_value: (name) @reference.read)
 (match_condition_list (name) @reference.read)
 (match_conditional_expression return_expression: (name) @reference.read)
 (case_statement value: (name) @reference.read)
 (arrow_function body: (name) @reference.read)
 (return_statement (name) @reference.read)
 (echo_statement (name) @reference.read)]

; relations
(namespace_definition name: (namespace_name) @module) @relation.package
(namespace_use_declaration) @path @relation.path
[(class_declaration name: (_) @module (base_clause (_) @imported))
 (class_declaration name: (_) @module (class_interface_clause (_) @imported))
 (class_declaration name: (_) @module
   body: (declaration_list (use_declaration [(name) (qualified_name)] @imported)))
 (trait_declaration name: (_) @module
   body: (declaration_list (use_declaration [(name) (qualified_name)] @imported)))
 (enum_declaration name: (_) @module (class_interface_clause (_) @imported))
 (interface_declaration name: (_) @module (base_clause (_) @imported))] @relation.base

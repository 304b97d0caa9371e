; definitions
(function_definition name: (identifier) @name) @definition.function
(decorated_definition
  definition: (function_definition name: (identifier) @name)) @definition.function
(class_definition name: (identifier) @name) @definition.class
(decorated_definition
  definition: (class_definition name: (identifier) @name)) @definition.class
(type_alias_statement left: (type (identifier) @name)) @definition.type
(module (expression_statement
  (assignment left: (identifier) @name))) @definition.variable
(class_definition body: (block (expression_statement
  (assignment left: (identifier) @name) @definition.field)))
(assignment left: (attribute
  object: (identifier) @_self attribute: (identifier) @name)
  (#eq? @_self "self")) @definition.field

; references
(call function: (identifier) @reference.call)
(call function: (attribute attribute: (identifier) @reference.call))
(decorator (identifier) @reference.call)
(decorator (attribute attribute: (identifier) @reference.call))
(assignment left: (attribute attribute: (identifier) @reference.write))
(augmented_assignment left: (attribute attribute: (identifier) @reference.write))
(attribute attribute: (identifier) @reference.read)
(import_from_statement name: (dotted_name (identifier) @reference.import))
(import_from_statement name: (aliased_import name: (dotted_name (identifier) @reference.import)))
(import_statement name: (dotted_name (identifier) @reference.import))
(class_definition superclasses: (argument_list (identifier) @reference.type))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @reference.type)))
(type (identifier) @reference.type)
(argument_list (identifier) @reference.read)
(keyword_argument value: (identifier) @reference.read)
(return_statement (identifier) @reference.read)
(list (identifier) @reference.read)
(tuple (identifier) @reference.read)
(dictionary (pair value: (identifier) @reference.read))
(assignment right: (identifier) @reference.read)
(comparison_operator (identifier) @reference.read)
(subscript value: (identifier) @reference.read)
(attribute object: (identifier) @reference.read)

; relations
[(import_from_statement module_name: (_) @module name: (dotted_name) @imported)
 (import_from_statement module_name: (_) @module
   name: (aliased_import name: (dotted_name) @imported alias: (identifier) @alias))] @relation.name
(import_from_statement module_name: (_) @module (wildcard_import)) @relation.star
[(import_statement name: (dotted_name) @module)
 (import_statement name: (aliased_import
   name: (dotted_name) @module alias: (identifier) @alias))] @relation.module
(class_definition name: (identifier) @module superclasses: (argument_list [
  (identifier) (attribute) (subscript)] @imported)) @relation.base

; definitions: functions
[(function_declaration name: (identifier) @name)
 (generator_function_declaration name: (identifier) @name)
 (function_signature name: (identifier) @name)
 (ambient_declaration (function_signature name: (identifier) @name))
 (export_statement declaration: [
   (function_declaration name: (identifier) @name)
   (generator_function_declaration name: (identifier) @name)
   (function_signature name: (identifier) @name)
   (ambient_declaration (function_signature name: (identifier) @name))])
 (export_statement "default" @name
   value: [(function_expression) (arrow_function) (generator_function)])
 (variable_declarator name: (identifier) @name
   value: [(arrow_function) (function_expression) (generator_function)])
 (lexical_declaration . (variable_declarator name: (identifier) @name
   value: [(arrow_function) (function_expression) (generator_function)]) .)
 (variable_declaration . (variable_declarator name: (identifier) @name
   value: [(arrow_function) (function_expression) (generator_function)]) .)
 (export_statement declaration: (lexical_declaration . (variable_declarator
   name: (identifier) @name
   value: [(arrow_function) (function_expression) (generator_function)]) .))
] @definition.function
; a component or handler made by a wrapper: const X = memo(() => ...)
(program [
  (lexical_declaration . (variable_declarator name: (identifier) @name
    value: (call_expression function: (identifier)
      arguments: (arguments . [(arrow_function) (function_expression)]))) .)
  (export_statement declaration: (lexical_declaration . (variable_declarator
    name: (identifier) @name
    value: (call_expression function: (identifier)
      arguments: (arguments . [(arrow_function) (function_expression)]))) .))
] @definition.function)
; Foo.prototype.bar = function, before the plain assignment that it also is
((expression_statement (assignment_expression
   left: (member_expression
     object: (member_expression
       object: (identifier) @scope property: (property_identifier) @_prototype)
     property: (property_identifier) @name)
   right: [(arrow_function) (function_expression) (generator_function)])) @definition.method
 (#eq? @_prototype "prototype"))
((expression_statement (assignment_expression
   left: (member_expression
     object: (identifier) @scope property: (property_identifier) @name)
   right: [(arrow_function) (function_expression) (generator_function)])) @definition.function
 (#not-match? @scope "^(exports|module|self|window|globalThis)$"))
(expression_statement (assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [(arrow_function) (function_expression) (generator_function)])) @definition.function

; definitions: types; a namespace often stands in an expression statement
[(class_declaration name: (type_identifier) @name)
 (abstract_class_declaration name: (type_identifier) @name)
 (class name: (type_identifier) @name)
 (ambient_declaration [
   (class_declaration name: (type_identifier) @name)
   (abstract_class_declaration name: (type_identifier) @name)])
 (export_statement declaration: [
   (class_declaration name: (type_identifier) @name)
   (abstract_class_declaration name: (type_identifier) @name)
   (ambient_declaration [
     (class_declaration name: (type_identifier) @name)
     (abstract_class_declaration name: (type_identifier) @name)])])
 (export_statement "default" @name value: (class))
 (lexical_declaration . (variable_declarator name: (identifier) @name value: (class)) .)
 (export_statement declaration: (lexical_declaration . (variable_declarator
   name: (identifier) @name value: (class)) .))
] @definition.class
[(interface_declaration name: (type_identifier) @name)
 (ambient_declaration (interface_declaration name: (type_identifier) @name))
 (export_statement declaration: (interface_declaration name: (type_identifier) @name))
 (export_statement declaration: (ambient_declaration
   (interface_declaration name: (type_identifier) @name)))
] @definition.interface
[(type_alias_declaration name: (type_identifier) @name)
 (ambient_declaration (type_alias_declaration name: (type_identifier) @name))
 (export_statement declaration: (type_alias_declaration name: (type_identifier) @name))
 (export_statement declaration: (ambient_declaration
   (type_alias_declaration name: (type_identifier) @name)))
] @definition.type
[(enum_declaration name: (identifier) @name)
 (ambient_declaration (enum_declaration name: (identifier) @name))
 (export_statement declaration: (enum_declaration name: (identifier) @name))
 (export_statement declaration: (ambient_declaration
   (enum_declaration name: (identifier) @name)))
] @definition.enum
[(internal_module name: [(identifier) (nested_identifier)] @name)
 (module name: [
   (identifier) @name (nested_identifier) @name (string (string_fragment) @name)])
 (expression_statement (internal_module name: [(identifier) (nested_identifier)] @name))
 (ambient_declaration [
   (internal_module name: [(identifier) (nested_identifier)] @name)
   (module name: [
     (identifier) @name (nested_identifier) @name (string (string_fragment) @name)])])
 (export_statement declaration: [
   (internal_module name: [(identifier) (nested_identifier)] @name)
   (module name: [(identifier) (nested_identifier)] @name)
   (ambient_declaration (internal_module name: [(identifier) (nested_identifier)] @name))])
] @definition.module

; definitions: members
(class_body [
  (method_definition
    name: [(property_identifier) (private_property_identifier) (string)] @name)
  (method_signature name: (property_identifier) @name)
  (abstract_method_signature name: (property_identifier) @name)
  (public_field_definition
    name: [(property_identifier) (private_property_identifier)] @name
    value: [(arrow_function) (function_expression)])
] @definition.method)
[(public_field_definition
   name: [(property_identifier) (private_property_identifier)] @name)
 (property_signature name: (property_identifier) @name)
 (method_signature name: (property_identifier) @name)
 (enum_body name: (property_identifier) @name)
 (enum_assignment name: (property_identifier) @name)
 (required_parameter (accessibility_modifier) pattern: (identifier) @name)
 (required_parameter "readonly" pattern: (identifier) @name)
 (optional_parameter (accessibility_modifier) pattern: (identifier) @name)
] @definition.field
(method_definition name: (property_identifier) @_constructor
  body: (statement_block (expression_statement (assignment_expression
    left: (member_expression object: (this) property: [
      (property_identifier) (private_property_identifier)] @name) @definition.field)))
  (#eq? @_constructor "constructor"))

; definitions: functions in object literals, by the name the object is bound to
[(variable_declarator name: (identifier) @scope value: (object [
   (method_definition name: (property_identifier) @name)
   (pair key: (property_identifier) @name value: [
     (function_expression) (arrow_function body: (statement_block (_)))])
 ] @definition.method))
 (variable_declarator name: (identifier) @scope value: [
   (as_expression (object [
     (method_definition name: (property_identifier) @name)
     (pair key: (property_identifier) @name value: [
       (function_expression) (arrow_function body: (statement_block (_)))])
   ] @definition.method))
   (satisfies_expression (object [
     (method_definition name: (property_identifier) @name)
     (pair key: (property_identifier) @name value: [
       (function_expression) (arrow_function body: (statement_block (_)))])
   ] @definition.method))])]
(object [
  (method_definition name: (property_identifier) @name)
  (pair key: (property_identifier) @name value: [
    (function_expression) (arrow_function body: (statement_block (_)))])
] @definition.method)

; definitions: names of a file or of what a namespace exports
((program [
   (lexical_declaration kind: "const"
     (variable_declarator name: (identifier) @name value: (_)? @_value) @definition.constant)
   (ambient_declaration (lexical_declaration kind: "const"
     (variable_declarator name: (identifier) @name) @definition.constant))])
 (#not-match? @_value "^require\\("))
(export_statement declaration: [
  (lexical_declaration kind: "const" [
    (variable_declarator name: (identifier) @name) @definition.constant
    (variable_declarator name: (object_pattern
      (shorthand_property_identifier_pattern) @name @definition.constant))])
  (ambient_declaration (lexical_declaration kind: "const"
    (variable_declarator name: (identifier) @name) @definition.constant))])
((program [
   (variable_declaration
     (variable_declarator name: (identifier) @name value: (_)? @_value) @definition.variable)
   (lexical_declaration kind: "let"
     (variable_declarator name: (identifier) @name) @definition.variable)
   (ambient_declaration [
     (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable)
     (lexical_declaration kind: "let"
       (variable_declarator name: (identifier) @name) @definition.variable)])])
 (#not-match? @_value "^require\\("))
(export_statement declaration: [
  (lexical_declaration kind: "let"
    (variable_declarator name: (identifier) @name) @definition.variable)
  (variable_declaration
    (variable_declarator name: (identifier) @name) @definition.variable)])

; references: calls; what follows "<" is a JSX element, which only tsx can name
(call_expression function: [
  (identifier) @reference.call
  (member_expression property: [
    (property_identifier) (private_property_identifier)] @reference.call)
  (non_null_expression [
    (identifier) @reference.call
    (member_expression property: (property_identifier) @reference.call)])])
(new_expression constructor: [
  (identifier) @reference.call
  (member_expression property: (property_identifier) @reference.call)])
(decorator [
  (identifier) @reference.call
  (member_expression property: (property_identifier) @reference.call)])
("<" . name: (identifier) @reference.call (#match? @reference.call "^[A-Z]"))
("<" . name: (member_expression property: (property_identifier) @reference.call))
("{" . (identifier) @reference.read . "}")

; references: writes
[(assignment_expression left: [
   (identifier) @reference.write
   (member_expression property: [
     (property_identifier) (private_property_identifier)] @reference.write)])
 (augmented_assignment_expression left: [
   (identifier) @reference.write
   (member_expression property: [
     (property_identifier) (private_property_identifier)] @reference.write)])
 (update_expression argument: [
   (identifier) @reference.write
   (member_expression property: [
     (property_identifier) (private_property_identifier)] @reference.write)])
 (pair key: (property_identifier) @reference.write)]

; references: imports
[(import_specifier name: (identifier) @reference.import)
 (import_clause (identifier) @reference.import)
 (import_require_clause (identifier) @reference.import)
 (import_alias (nested_identifier property: (property_identifier) @reference.import))
 (namespace_import (identifier) @reference.import)
 (export_statement
   (export_clause (export_specifier name: (identifier) @reference.import)) source: (string))]
((variable_declarator
   name: [
     (identifier) @reference.import
     (object_pattern [
       (shorthand_property_identifier_pattern) @reference.import
       (pair_pattern key: (property_identifier) @reference.import)])]
   value: (call_expression function: (identifier) @_require))
 (#eq? @_require "require"))

; references: types; the names of definitions are taken out by the reader
(type_identifier) @reference.type
(extends_clause value: [
  (identifier) @reference.type
  (member_expression property: (property_identifier) @reference.type)])

; references: reads
[(member_expression object: (identifier) @reference.read)
 (member_expression property: [
   (property_identifier) (private_property_identifier)] @reference.read)
 (shorthand_property_identifier) @reference.read
 (object_pattern [
   (shorthand_property_identifier_pattern) @reference.read
   (pair_pattern key: (property_identifier) @reference.read)
   (object_assignment_pattern left: (shorthand_property_identifier_pattern) @reference.read)])
 (arguments (identifier) @reference.read)
 (array (identifier) @reference.read)
 (arrow_function body: (identifier) @reference.read)
 (as_expression (identifier) @reference.read)
 (assignment_expression right: (identifier) @reference.read)
 (assignment_pattern right: (identifier) @reference.read)
 (augmented_assignment_expression right: (identifier) @reference.read)
 (await_expression (identifier) @reference.read)
 (binary_expression (identifier) @reference.read)
 (computed_property_name (identifier) @reference.read)
 (enum_assignment value: (identifier) @reference.read)
 (export_specifier name: (identifier) @reference.read)
 (export_statement value: (identifier) @reference.read)
 (export_statement "=" (identifier) @reference.read)
 (for_in_statement right: (identifier) @reference.read)
 (instantiation_expression (identifier) @reference.read)
 (nested_type_identifier module: (identifier) @reference.read)
 (non_null_expression (identifier) @reference.read)
 (object_assignment_pattern right: (identifier) @reference.read)
 (pair value: (identifier) @reference.read)
 (parenthesized_expression (identifier) @reference.read)
 (public_field_definition value: (identifier) @reference.read)
 (required_parameter value: (identifier) @reference.read)
 (return_statement (identifier) @reference.read)
 (satisfies_expression (identifier) @reference.read)
 (sequence_expression (identifier) @reference.read)
 (spread_element (identifier) @reference.read)
 (subscript_expression (identifier) @reference.read)
 (switch_case value: (identifier) @reference.read)
 (template_substitution (identifier) @reference.read)
 (ternary_expression (identifier) @reference.read)
 (throw_statement (identifier) @reference.read)
 (type_query (identifier) @reference.read)
 (unary_expression (identifier) @reference.read)
 (variable_declarator value: (identifier) @reference.read)
 (yield_expression (identifier) @reference.read)]
((type_arguments) . (identifier) @reference.read)

; relations: imports; the others are in ecmascript.scm
(import_statement
  (import_require_clause (identifier) @alias source: (string) @module)) @relation.default

; relations: bases
[(class_declaration name: (_) @module (class_heritage (extends_clause value: [
   (identifier) (member_expression)] @imported)))
 (class_declaration name: (_) @module (class_heritage (implements_clause (_) @imported)))
 (abstract_class_declaration name: (_) @module (class_heritage (extends_clause value: [
   (identifier) (member_expression)] @imported)))
 (abstract_class_declaration name: (_) @module
   (class_heritage (implements_clause (_) @imported)))
 (interface_declaration name: (_) @module (extends_type_clause type: (_) @imported))
] @relation.base

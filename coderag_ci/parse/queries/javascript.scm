; definitions: functions
[(function_declaration name: (identifier) @name)
 (generator_function_declaration name: (identifier) @name)
 (export_statement declaration: [
   (function_declaration name: (identifier) @name)
   (generator_function_declaration name: (identifier) @name)])
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
[(expression_statement (assignment_expression
   left: (member_expression property: (property_identifier) @name)
   right: [(arrow_function) (function_expression) (generator_function)]))
 (expression_statement (assignment_expression right: (assignment_expression
   left: (member_expression property: (property_identifier) @name)
   right: [(arrow_function) (function_expression) (generator_function)])))
] @definition.function

; definitions: classes and their members
[(class_declaration name: (identifier) @name)
 (class name: (identifier) @name)
 (export_statement declaration: (class_declaration name: (identifier) @name))
 (export_statement "default" @name value: (class))
 (lexical_declaration . (variable_declarator name: (identifier) @name value: (class)) .)
 (export_statement declaration: (lexical_declaration . (variable_declarator
   name: (identifier) @name value: (class)) .))
] @definition.class
(class_body [
  (method_definition
    name: [(property_identifier) (private_property_identifier) (string)] @name)
  (field_definition
    property: [(property_identifier) (private_property_identifier)] @name
    value: [(arrow_function) (function_expression)])
] @definition.method)
(field_definition
  property: [(property_identifier) (private_property_identifier)] @name) @definition.field
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
 (assignment_expression
   left: [(identifier) @scope
          (member_expression object: (identifier) @scope
            property: (property_identifier) @_prototype (#eq? @_prototype "prototype"))]
   right: (object [
     (method_definition name: (property_identifier) @name)
     (pair key: (property_identifier) @name value: [
       (function_expression) (arrow_function body: (statement_block (_)))])
   ] @definition.method))]
(object [
  (method_definition name: (property_identifier) @name)
  (pair key: (property_identifier) @name value: [
    (function_expression) (arrow_function body: (statement_block (_)))])
] @definition.method)

; definitions: top-level names; what is required is an import instead
((program [
   (lexical_declaration kind: "const"
     (variable_declarator name: (identifier) @name value: (_)? @_value) @definition.constant)
   (export_statement declaration: (lexical_declaration kind: "const" [
     (variable_declarator name: (identifier) @name) @definition.constant
     (variable_declarator name: (object_pattern
       (shorthand_property_identifier_pattern) @name @definition.constant))]))])
 (#not-match? @_value "^require\\("))
((program [
   (variable_declaration
     (variable_declarator name: (identifier) @name value: (_)? @_value) @definition.variable)
   (lexical_declaration kind: "let"
     (variable_declarator name: (identifier) @name) @definition.variable)
   (export_statement declaration: [
     (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable)
     (lexical_declaration kind: "let"
       (variable_declarator name: (identifier) @name) @definition.variable)])])
 (#not-match? @_value "^require\\("))

; references: calls
(call_expression function: [
  (identifier) @reference.call
  (member_expression property: [
    (property_identifier) (private_property_identifier)] @reference.call)])
(new_expression constructor: [
  (identifier) @reference.call
  (member_expression property: (property_identifier) @reference.call)])
(decorator [
  (identifier) @reference.call
  (member_expression property: (property_identifier) @reference.call)])
([(jsx_opening_element name: (identifier) @reference.call)
  (jsx_self_closing_element name: (identifier) @reference.call)]
 (#match? @reference.call "^[A-Z]"))
[(jsx_opening_element name: (member_expression property: (property_identifier) @reference.call))
 (jsx_self_closing_element
   name: (member_expression property: (property_identifier) @reference.call))]

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

; references: types
(class_heritage [
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
 (assignment_expression right: (identifier) @reference.read)
 (augmented_assignment_expression right: (identifier) @reference.read)
 (assignment_pattern right: (identifier) @reference.read)
 (object_assignment_pattern right: (identifier) @reference.read)
 (await_expression (identifier) @reference.read)
 (binary_expression (identifier) @reference.read)
 (computed_property_name (identifier) @reference.read)
 (export_specifier name: (identifier) @reference.read)
 (export_statement value: (identifier) @reference.read)
 (field_definition value: (identifier) @reference.read)
 (for_in_statement right: (identifier) @reference.read)
 (jsx_expression (identifier) @reference.read)
 (pair value: (identifier) @reference.read)
 (parenthesized_expression (identifier) @reference.read)
 (return_statement (identifier) @reference.read)
 (sequence_expression (identifier) @reference.read)
 (spread_element (identifier) @reference.read)
 (subscript_expression (identifier) @reference.read)
 (switch_case value: (identifier) @reference.read)
 (template_substitution (identifier) @reference.read)
 (ternary_expression (identifier) @reference.read)
 (throw_statement (identifier) @reference.read)
 (unary_expression (identifier) @reference.read)
 (variable_declarator value: (identifier) @reference.read)
 (yield_expression (identifier) @reference.read)]

; relations: bases
(class_declaration name: (_) @module (class_heritage [
  (identifier) (member_expression)] @imported)) @relation.base

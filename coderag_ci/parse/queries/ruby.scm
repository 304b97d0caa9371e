; definitions
(module name: [
  (constant) @name
  (scope_resolution scope: (constant) @scope name: (constant) @name)
  (scope_resolution scope: (scope_resolution) @scope name: (constant) @name)
  (scope_resolution !scope name: (constant) @name)]) @definition.module
(class name: [
  (constant) @name
  (scope_resolution scope: (constant) @scope name: (constant) @name)
  (scope_resolution scope: (scope_resolution) @scope name: (constant) @name)
  (scope_resolution !scope name: (constant) @name)]) @definition.class
((assignment left: (constant) @name right: (call
   receiver: (constant) @_base method: (identifier) @_new block: [(do_block) (block)])) @definition.class
  (#any-of? @_base "Class" "Struct" "Data" "Module")
  (#any-of? @_new "new" "define"))
(method name: [
  (identifier) @name
  (constant) @name
  (operator) @name
  (setter name: (identifier) @name)]) @definition.function
(singleton_method name: [
  (identifier) @name
  (constant) @name
  (operator) @name
  (setter name: (identifier) @name)]) @definition.method
; a definition that is an argument (`private def x`): the unit is the call
(call arguments: (argument_list (method name: [
  (identifier) @name
  (operator) @name
  (setter name: (identifier) @name)]))) @definition.function
(call arguments: (argument_list (singleton_method name: [
  (identifier) @name
  (operator) @name
  (setter name: (identifier) @name)]))) @definition.method
[(assignment left: [
   (constant) @name
   (scope_resolution scope: (constant) @scope name: (constant) @name)
   (left_assignment_list (constant) @name)])
 (operator_assignment left: (constant) @name)] @definition.constant
((call method: (identifier) @_attr arguments: (argument_list [
   (simple_symbol) @name
   (string (string_content) @name)])) @definition.field
  (#any-of? @_attr "attr_accessor" "attr_reader" "attr_writer" "mattr_accessor" "cattr_accessor"
    "class_attribute"))
((call method: (identifier) @_alias arguments: (argument_list . (simple_symbol) @name)) @definition.field
  (#any-of? @_alias "alias_method" "define_method"))
(alias name: [(identifier) (simple_symbol)] @name) @definition.field

; references
(call method: [(identifier) (constant)] @reference.call)
((call receiver: [
   (constant) @reference.call
   (scope_resolution name: (constant) @reference.call)] method: (identifier) @_new)
  (#eq? @_new "new"))
(alias alias: [(identifier) (simple_symbol)] @reference.read)
[(assignment left: [
   (call method: (identifier) @reference.write)
   (instance_variable) @reference.write
   (class_variable) @reference.write
   (global_variable) @reference.write
   (left_assignment_list [
     (call method: (identifier) @reference.write)
     (instance_variable) @reference.write
     (class_variable) @reference.write
     (global_variable) @reference.write])])
 (operator_assignment left: [
   (call method: (identifier) @reference.write)
   (instance_variable) @reference.write
   (class_variable) @reference.write
   (global_variable) @reference.write])]
((call method: (identifier) @_require arguments: (argument_list
   (string (string_content) @reference.import)))
  (#any-of? @_require "require" "require_relative" "load" "autoload"))
(superclass [
  (constant) @reference.type
  (scope_resolution name: (constant) @reference.type)])
(exceptions [
  (constant) @reference.type
  (scope_resolution name: (constant) @reference.type)])
[(constant) (instance_variable) (class_variable) (global_variable)] @reference.read
[(argument_list (identifier) @reference.read)
 (call receiver: (identifier) @reference.read)
 (assignment right: (identifier) @reference.read)
 (operator_assignment right: (identifier) @reference.read)
 (right_assignment_list (identifier) @reference.read)
 (optional_parameter value: (identifier) @reference.read)
 (keyword_parameter value: (identifier) @reference.read)
 (pair (identifier) @reference.read)
 (array (identifier) @reference.read)
 (binary (identifier) @reference.read)
 (unary operand: (identifier) @reference.read)
 (range (identifier) @reference.read)
 (conditional (identifier) @reference.read)
 (element_reference (identifier) @reference.read)
 (parenthesized_statements (identifier) @reference.read)
 (interpolation (identifier) @reference.read)
 (splat_argument (identifier) @reference.read)
 (hash_splat_argument (identifier) @reference.read)
 (block_argument (identifier) @reference.read)
 (body_statement (identifier) @reference.read)
 (block_body (identifier) @reference.read)
 (then (identifier) @reference.read)
 (else (identifier) @reference.read)
 (ensure (identifier) @reference.read)
 (method body: (identifier) @reference.read)
 (if condition: (identifier) @reference.read)
 (elsif condition: (identifier) @reference.read)
 (unless condition: (identifier) @reference.read)
 (while condition: (identifier) @reference.read)
 (until condition: (identifier) @reference.read)
 (if_modifier (identifier) @reference.read)
 (unless_modifier (identifier) @reference.read)
 (case value: (identifier) @reference.read)
 (pattern (identifier) @reference.read)]

; relations
((call method: (identifier) @_require arguments: (argument_list
   (string (string_content) @module))) @relation.include
  (#any-of? @_require "require" "require_relative" "load" "autoload"))
(class name: (_) @module superclass: (superclass (_) @imported)) @relation.base
([(class name: (_) @module body: (body_statement (call method: (identifier) @_include
    arguments: (argument_list [(constant) (scope_resolution)] @imported))))
  (module name: (_) @module body: (body_statement (call method: (identifier) @_include
    arguments: (argument_list [(constant) (scope_resolution)] @imported))))] @relation.base
  (#any-of? @_include "include" "extend" "prepend"))

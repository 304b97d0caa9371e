; what JavaScript, TypeScript and TSX have in common

; relations: imports
(import_statement
  (import_clause (named_imports (import_specifier name: (_) @imported alias: (_)? @alias)))
  source: (string) @module) @relation.name
(import_statement (import_clause (identifier) @alias) source: (string) @module) @relation.default
(import_statement
  (import_clause (namespace_import (identifier) @alias)) source: (string) @module) @relation.module
((variable_declarator
   name: (identifier) @alias
   value: (call_expression
     function: (identifier) @_require arguments: (arguments . (string) @module))) @relation.default
 (#eq? @_require "require"))
((variable_declarator
   name: (object_pattern [
     (shorthand_property_identifier_pattern) @imported
     (pair_pattern key: (property_identifier) @imported value: (identifier) @alias)])
   value: (call_expression
     function: (identifier) @_require arguments: (arguments . (string) @module))) @relation.name
 (#eq? @_require "require"))
((variable_declarator
   name: (identifier) @alias
   value: (member_expression
     object: (call_expression
       function: (identifier) @_require arguments: (arguments . (string) @module))
     property: (property_identifier) @imported)) @relation.name
 (#eq? @_require "require"))

; relations: exports
(export_statement
  (export_clause (export_specifier name: (_) @imported alias: (_)? @alias))
  source: (string)? @module) @relation.export
(export_statement "*" source: (string) @module) @relation.reexport
[(export_statement "default" value: (identifier) @imported)
 (export_statement "default" declaration: (_ name: (_) @imported))] @relation.exported
((assignment_expression
   left: (member_expression object: (identifier) @_module property: (property_identifier) @_exports)
   right: (identifier) @imported) @relation.exported
 (#eq? @_module "module") (#eq? @_exports "exports"))
((assignment_expression
   left: (member_expression object: (identifier) @_module property: (property_identifier) @_exports)
   right: (call_expression
     function: (identifier) @_require arguments: (arguments . (string) @module))) @relation.reexport
 (#eq? @_module "module") (#eq? @_exports "exports") (#eq? @_require "require"))

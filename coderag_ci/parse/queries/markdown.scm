; definitions
; The grammar opens a section at an ATX heading only; one that opens with a setext
; heading is the text up to the next ATX heading.
(section . (atx_heading heading_content: (inline) @name)) @definition.section
(section . (setext_heading heading_content: (paragraph (inline) @name))) @definition.section
((setext_heading heading_content: (paragraph (inline) @name)) @definition.section
 . [(block_quote) (fenced_code_block) (html_block) (indented_code_block)
    (link_reference_definition) (list) (paragraph) (pipe_table) (thematic_break)
 ]* @definition.section)

//! Finds the headings of a Markdown text with a parser that can tell them from lines in code blocks.

use super::outline::{Outline, Part, close, line_at, line_count, line_starts};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

pub(super) fn outline(text: &str) -> Outline {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS
        | Options::ENABLE_STRIKETHROUGH;
    let starts = line_starts(text);
    let (mut parts, mut facts): (Vec<Part>, Vec<String>) = (Vec::new(), Vec::new());
    // Headings in quotes and lists do not start a section.
    let (mut nested, mut open, mut code) = (0_usize, false, 0_usize);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::FootnoteDefinition(_)) => nested += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::FootnoteDefinition) => nested = nested.saturating_sub(1),
            Event::Start(Tag::MetadataBlock(_)) => {
                let (first, last) = (line_at(&starts, range.start), line_at(&starts, last_byte(text, range.end)));
                facts.push(format!("front matter in lines {first}-{last}"));
            }
            Event::Start(Tag::CodeBlock(_)) => code += 1,
            Event::Start(Tag::Heading { level, .. }) if nested == 0 => {
                let first = line_at(&starts, range.start);
                // In Markdown, a lone CR ends a line, but not in the line numbers used here.
                open = text[starts[first - 1]..range.start].chars().all(|letter| letter == ' ');
                if open {
                    let heading = line_at(&starts, last_byte(text, range.end));
                    parts.push(Part { level: level as usize, title: String::new(), first, heading, last: 0 });
                }
            }
            Event::End(TagEnd::Heading(_)) => open = false,
            Event::Text(words) | Event::Code(words) if open => push(&mut parts, &words),
            Event::SoftBreak | Event::HardBreak if open => push(&mut parts, " "),
            _ => {}
        }
    }
    for part in &mut parts {
        part.title = part.title.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    close(&mut parts, line_count(text));
    if code > 0 {
        facts.push(format!("{code} code {}", if code == 1 { "block" } else { "blocks" }));
    }
    Outline { kind: "Markdown", facts, parts, word: "section", is_patchable: true }
}

/// Returns the position of a block's last byte that is not part of a line break.
fn last_byte(text: &str, end: usize) -> usize {
    text[..end].trim_end_matches('\n').len().saturating_sub(1)
}

fn push(parts: &mut [Part], words: &str) {
    if let Some(part) = parts.last_mut() {
        part.title.push_str(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_outline(text: &str) -> Vec<(usize, String, usize, usize)> {
        outline(text).parts.into_iter().map(|part| (part.level, part.title, part.first, part.last)).collect()
    }

    #[test]
    fn atx_and_setext_headings_are_found_except_in_code() {
        let text = "---\ntitle: x\n---\nintro\n\nBig\n===\ntext\n\n## Use `it` *now*\n```sh\n# no heading\n```\n\n    # nor this\n\n\
                    > # quoted\n\n- # in a list\n\n### Deep ###\nx\n\nSmall\n-----\nlast";
        let expected = [(1, "Big", 6, 25), (2, "Use it now", 10, 22), (3, "Deep", 21, 22), (2, "Small", 24, 26)];
        let mut expected: Vec<_> =
            expected.into_iter().map(|(level, title, first, last)| (level, title.to_owned(), first, last)).collect();
        expected[0].3 = 26;
        expected[1].3 = 23;
        expected[2].3 = 23;
        assert_eq!(describe_outline(text), expected);
        assert_eq!(outline(text).facts[0], "front matter in lines 1-3");
        assert_eq!(outline(text).parts[0].heading, 7);
    }

    #[test]
    fn text_without_headings_has_no_sections() {
        assert_eq!(describe_outline(""), []);
        assert_eq!(describe_outline("#no space\ntext\n"), []);
    }
}

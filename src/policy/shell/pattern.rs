//! Shell text operations: parameter operators, `printf` formats and patterns.

use super::arg::{Arg, UNKNOWN};
use super::escapes::{Style, decode};

/// Maximum length, in bytes, of a value that is matched against a pattern. Matching takes cubic time.
const MAX_TRIMMED: usize = 256;

/// Applies a parameter operator, as in `${x,,}`, `${x#prefix}`, `${x/a/b}` and `${x:1:2}`. The result is unknown if it
/// cannot be computed exactly.
pub(crate) fn apply(text: &str, operator: &str, operand: &str) -> String {
    let unknown = || UNKNOWN.to_string();
    let cuts = matches!(operator.as_bytes(), [b'#' | b'%' | b'/', ..]);
    if cuts && (text.len() > MAX_TRIMMED || operand.len() > MAX_TRIMMED) {
        return unknown();
    }
    match operator {
        "" | ":-" | "-" | ":=" | "=" | ":?" | "?" | ":+" | "+" => text.to_owned(),
        ",," if operand.is_empty() => text.to_lowercase(),
        "^^" if operand.is_empty() => text.to_uppercase(),
        "," | "^" if operand.is_empty() => {
            let mut rest = text.chars();
            let first = rest
                .next()
                .map(|first| if operator == "," { first.to_lowercase().to_string() } else { first.to_uppercase().to_string() });
            first.map_or_else(String::new, |first| first + rest.as_str())
        }
        "#" | "##" => ShellPattern::new(operand).map_or_else(unknown, |pattern| trim_start(text, &pattern, operator == "##")),
        "%" | "%%" => ShellPattern::new(operand).map_or_else(unknown, |pattern| trim_end(text, &pattern, operator == "%%")),
        "/" | "//" | "/#" | "/%" => replace(text, operator, operand).unwrap_or_else(unknown),
        ":" => slice(text, operand).unwrap_or_else(unknown),
        "@" => transform(text, operand),
        _ => unknown(),
    }
}

/// Applies `${x@L}` and similar operators.
fn transform(text: &str, letter: &str) -> String {
    match letter {
        "L" => text.to_lowercase(),
        "U" => text.to_uppercase(),
        "u" => {
            let mut rest = text.chars();
            rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
        }
        "E" => decode(text, Style::Quotes),
        "Q" => format!("'{}'", text.replace('\'', "'\\''")),
        // The value is expanded again. Its expansions are checked separately.
        "P" => text.to_owned(),
        _ => UNKNOWN.to_string(),
    }
}

fn slice(text: &str, operand: &str) -> Option<String> {
    let (from, length) = operand.split_once(':').map_or((operand, None), |(from, length)| (from, Some(length)));
    let number = |text: &str| if text.trim().is_empty() { Some(0) } else { text.trim().parse::<i64>().ok() };
    let count = text.chars().count() as i64;
    let from = number(from)?;
    let from = if from < 0 { count.checked_add(from)? } else { from };
    let length = length.map_or(Some(count), number)?;
    if from < 0 || from > count {
        return Some(String::new());
    }
    let length = if length < 0 { (count - from).checked_add(length).filter(|length| *length >= 0)? } else { length };
    Some(text.chars().skip(from as usize).take(length as usize).collect())
}

/// One element of a shell pattern.
#[derive(Debug, PartialEq, Eq)]
enum Element {
    Letter(char),
    Any,
    Many,
    /// `[…]`, with its characters and ranges, and whether it is negated.
    Class(Vec<(char, char)>, bool),
}

/// A shell pattern whose meaning does not depend on the locale.
struct ShellPattern(Vec<Element>);

impl ShellPattern {
    /// Parses a pattern. Returns `None` if it contains unsupported parts, such as named classes or unknown text.
    fn new(text: &str) -> Option<Self> {
        let mut elements = Vec::new();
        let mut rest = text.chars();
        while let Some(letter) = rest.next() {
            elements.push(match letter {
                UNKNOWN => return None,
                '*' => Element::Many,
                '?' => Element::Any,
                '\\' => Element::Letter(rest.next().unwrap_or('\\')),
                '[' => match class(rest.as_str()).ok()? {
                    Some((class, length)) => {
                        rest = rest.as_str().get(length..)?.chars();
                        class
                    }
                    None => Element::Letter('['),
                },
                letter => Element::Letter(letter),
            });
        }
        Some(Self(elements))
    }

    fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut p, mut t, mut star, mut mark) = (0, 0, None, 0);
        while t < text.len() {
            match self.0.get(p) {
                Some(Element::Many) => {
                    star = Some(p);
                    mark = t;
                    p += 1;
                    continue;
                }
                Some(element) if element.matches(text[t]) => {
                    p += 1;
                    t += 1;
                    continue;
                }
                Some(_) | None => {}
            }
            let Some(at) = star else { return false };
            p = at + 1;
            mark += 1;
            t = mark;
        }
        self.0[p..].iter().all(|element| *element == Element::Many)
    }
}

impl Element {
    fn matches(&self, letter: char) -> bool {
        match self {
            Self::Letter(one) => *one == letter,
            Self::Any => true,
            Self::Many => false,
            Self::Class(ranges, others) => ranges.iter().any(|(from, to)| (*from..=*to).contains(&letter)) != *others,
        }
    }
}

/// Indicates that the members of a character class cannot be determined.
struct UnknownClass;

/// Returns the character class after a `[` and its length in bytes, or `None` if the class is not closed.
fn class(text: &str) -> Result<Option<(Element, usize)>, UnknownClass> {
    let others = text.starts_with(['!', '^']);
    let from = usize::from(others);
    let inner = text.get(from..).ok_or(UnknownClass)?;
    let Some(close) = inner.char_indices().skip(1).find(|(_, letter)| *letter == ']').map(|(at, _)| at) else {
        return Ok(None);
    };
    let letters: Vec<char> = inner[..close].chars().collect();
    if !inner.is_ascii() || letters.iter().any(|letter| matches!(letter, '[' | '\\' | '\0')) {
        return Err(UnknownClass);
    }
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        if at + 2 < letters.len() && letters[at + 1] == '-' {
            let (from, to) = (letters[at], letters[at + 2]);
            let same = |kind: fn(&char) -> bool| kind(&from) && kind(&to);
            // The order of other characters in a range depends on the locale.
            if !(same(char::is_ascii_digit) || same(char::is_ascii_lowercase) || same(char::is_ascii_uppercase)) {
                return Err(UnknownClass);
            }
            ranges.push((from, to));
            at += 3;
        } else {
            ranges.push((letters[at], letters[at]));
            at += 1;
        }
    }
    Ok(Some((Element::Class(ranges, others), from + close + 1)))
}

fn boundaries(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()
}

fn trim_start(text: &str, pattern: &ShellPattern, longest: bool) -> String {
    let cuts = boundaries(text);
    let hit = |at: &&usize| pattern.matches(&text[..**at]);
    let cut = if longest { cuts.iter().rev().find(hit) } else { cuts.iter().find(hit) };
    cut.map_or(text, |at| &text[*at..]).to_owned()
}

fn trim_end(text: &str, pattern: &ShellPattern, longest: bool) -> String {
    let cuts = boundaries(text);
    let hit = |at: &&usize| pattern.matches(&text[**at..]);
    let cut = if longest { cuts.iter().find(hit) } else { cuts.iter().rev().find(hit) };
    cut.map_or(text, |at| &text[..*at]).to_owned()
}

/// Applies `${x/a/b}` and similar operators, which replace the first longest match or all of them.
fn replace(text: &str, operator: &str, operand: &str) -> Option<String> {
    let slash = {
        let mut escaped = false;
        operand.char_indices().find(|(_, letter)| {
            let found = *letter == '/' && !escaped;
            escaped = *letter == '\\' && !escaped;
            found
        })
    };
    let (from, to) = slash.map_or((operand, ""), |(at, _)| (&operand[..at], &operand[at + 1..]));
    if from.is_empty() {
        return Some(text.to_owned());
    }
    // In some shell versions, `&` and backslashes in the replacement are special.
    if to.contains(['&', '\\']) {
        return None;
    }
    let pattern = ShellPattern::new(from)?;
    let cuts = boundaries(text);
    let end_of = |start: usize| cuts.iter().rev().copied().find(|end| *end >= start && pattern.matches(&text[start..*end]));
    if operator == "/%" {
        let start = cuts.iter().copied().find(|start| pattern.matches(&text[*start..]));
        return Some(start.map_or_else(|| text.to_owned(), |start| format!("{}{to}", &text[..start])));
    }
    let (mut result, mut done, mut at) = (String::new(), 0, 0);
    while at < text.len() {
        match end_of(at).filter(|end| *end > at) {
            Some(end) => {
                result.push_str(&text[done..at]);
                result.push_str(to);
                (done, at) = (end, end);
                if operator != "//" {
                    break;
                }
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
        if operator == "/#" {
            break;
        }
    }
    result.push_str(&text[done..]);
    Some(result)
}

/// Returns whether a pattern with the wildcards `*` and `?` matches the whole text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star, mut mark) = (0, 0, None, 0);
    while t < text.len() {
        if p < pattern.len() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*' {
            p += 1;
            t += 1;
        } else if p < pattern.len() && pattern[p] == '*' {
            star = Some(p);
            mark = t;
            p += 1;
        } else if let Some(at) = star {
            p = at + 1;
            mark += 1;
            t = mark;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Replaces each `[…]` in a pattern with `?`.
pub(crate) fn replace_classes(pattern: &str) -> String {
    let mut open = String::new();
    let mut rest = pattern;
    while let Some((before, class)) = rest.split_once('[') {
        open.push_str(before);
        open.push('?');
        rest = class.get(1..).and_then(|class| class.split_once(']')).map_or("", |(_, after)| after);
    }
    open + rest
}

/// Formats text as `printf` does. Only `%s` is supported; the result of any other conversion is unknown. The format is
/// repeated while arguments remain.
pub(crate) fn format(format: &str, args: &[Arg]) -> String {
    let mut result = String::new();
    let mut rest = args.iter();
    loop {
        let before = rest.len();
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                result.push(character);
                continue;
            }
            match characters.next() {
                Some('s') => result.push_str(rest.next().map_or("", |arg| arg.text.as_str())),
                Some('b') => result.push_str(&rest.next().map_or_else(String::new, |arg| decode(&arg.text, Style::Echo))),
                Some('c') => result.extend(rest.next().and_then(|arg| arg.text.chars().next())),
                Some('%') => result.push('%'),
                Some(_) => {
                    rest.next();
                    result.push(UNKNOWN);
                }
                None => result.push('%'),
            }
        }
        if rest.len() == 0 || rest.len() == before {
            return result;
        }
    }
}

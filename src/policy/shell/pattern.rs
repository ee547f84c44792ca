//! The small text operations of a shell: parameter operators, `printf` formats, escapes.

use super::values::{Arg, UNKNOWN};

/// Longer values are not trimmed by pattern, which costs the cube of the length.
const MOST_TRIMMED: usize = 256;

/// `${x,,}`, `${x#prefix}`, `${x/a/b}`, `${x:1:2}`. An operator that is not worked out leaves the text as it was.
pub fn apply(text: &str, operator: &str, operand: &str) -> String {
    if matches!(operator, "#" | "##" | "%" | "%%") && (text.len() > MOST_TRIMMED || operand.len() > MOST_TRIMMED) {
        return UNKNOWN.to_string();
    }
    match operator.as_bytes() {
        [b',', ..] => text.to_lowercase(),
        [b'^', ..] => text.to_uppercase(),
        [b'#', ..] => shortest(text, operand, operator == "##"),
        [b'%', ..] => shortest_end(text, operand, operator == "%%"),
        [b'/', ..] => {
            let (from, to) = operand.split_once('/').unwrap_or((operand, ""));
            if operator == "//" { text.replace(from, to) } else { text.replacen(from, to, 1) }
        }
        [b':'] => slice(text, operand),
        [b'@'] => transformed(text, operand),
        _ => text.to_owned(),
    }
}

/// `${x@L}` and its like.
fn transformed(text: &str, letter: &str) -> String {
    match letter {
        "L" => text.to_lowercase(),
        "U" => text.to_uppercase(),
        "u" => {
            let mut rest = text.chars();
            rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
        }
        "E" => unescape(text),
        "Q" => format!("'{}'", text.replace('\'', "'\\''")),
        _ => text.to_owned(),
    }
}

fn slice(text: &str, operand: &str) -> String {
    let (from, length) = operand.split_once(':').map_or((operand, None), |(from, length)| (from, Some(length)));
    let Ok(from) = from.trim().parse::<i64>() else { return text.to_owned() };
    let count = text.chars().count() as i64;
    let from = if from < 0 { (count + from).max(0) } else { from };
    let length = length.map_or(Ok(count), |length| length.trim().parse::<i64>()).unwrap_or(count);
    let length = if length < 0 { (count - from + length).max(0) } else { length };
    text.chars().skip(from as usize).take(length as usize).collect()
}

fn shortest(text: &str, pattern: &str, longest: bool) -> String {
    let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let hit = |at: &&usize| matches(pattern, &text[..**at]);
    let cut = if longest { cuts.iter().rev().find(hit) } else { cuts.iter().find(hit) };
    cut.map_or(text, |at| &text[*at..]).to_owned()
}

fn shortest_end(text: &str, pattern: &str, longest: bool) -> String {
    let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let hit = |at: &&usize| matches(pattern, &text[**at..]);
    let cut = if longest { cuts.iter().find(hit) } else { cuts.iter().rev().find(hit) };
    cut.map_or(text, |at| &text[..*at]).to_owned()
}

/// Whether a pattern of `*` and `?` matches the whole text.
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

/// The pattern with each `[…]` as any one letter.
pub fn with_classes_open(pattern: &str) -> String {
    let mut open = String::new();
    let mut rest = pattern;
    while let Some((before, class)) = rest.split_once('[') {
        open.push_str(before);
        open.push('?');
        rest = class.get(1..).and_then(|class| class.split_once(']')).map_or("", |(_, after)| after);
    }
    open + rest
}

/// Backslash escapes of `echo -e` and `printf`.
pub fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '\\' {
            result.push(character);
            continue;
        }
        let (radix, most) = match rest.peek() {
            Some('n') => {
                result.push('\n');
                rest.next();
                continue;
            }
            Some('t') => {
                result.push('\t');
                rest.next();
                continue;
            }
            Some('x') => (16, 2),
            Some('0'..='7') => (8, 4),
            _ => {
                result.push('\\');
                continue;
            }
        };
        if radix == 16 {
            rest.next();
        }
        let mut digits = String::new();
        while digits.len() < most && rest.peek().is_some_and(|c| c.is_digit(radix)) {
            digits.extend(rest.next());
        }
        let code = u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32);
        result.push(code.unwrap_or(UNKNOWN));
    }
    result
}

/// `printf`'s `%s`; other conversions stay unknown. The format is used again while arguments remain.
pub fn format(format: &str, args: &[Arg]) -> String {
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
                Some('s' | 'b') => result.push_str(rest.next().map_or("", |arg| arg.text.as_str())),
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

//! Finds the text that was probably intended, in case the model copied it from a view of the file or escaped characters
//! once too often.

use std::collections::HashSet;

/// A variant of an edit, with conditions that its matches must meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variant {
    pub old: String,
    pub new: String,
    /// How the variant differs, as described in the message.
    pub how: &'static str,
    /// Whether a match must begin at the start of a line.
    pub at_start: bool,
    /// Whether a match must end at the end of a line.
    pub at_end: bool,
    /// Whether a match must end at the end of the file.
    pub at_eof: bool,
    /// Whether a match must be outside code fences. If it were inside one, the fence in the edit would be intentional.
    pub unfenced: bool,
}

/// Returns the variants in the order in which to try them.
pub(super) fn variants(text: &str, old: &str, new: &str) -> Vec<Variant> {
    let readings =
        [strip_line_numbers(text, old, new), strip_fence(old, new), escaped(old, new), quoted(old, new), entities(old, new)];
    let carriage_returns = carriage_returns(text, old, new);
    let readings: Vec<Variant> = readings.into_iter().flatten().collect();
    let own = Variant { how: "", ..unchanged(old, new) };
    let ends =
        |variant: &Variant| [without_blank_lines(variant), without_last_break(variant)].into_iter().flatten().collect::<Vec<_>>();
    let mut all = ends(&own);
    all.extend(carriage_returns);
    for reading in readings {
        let more = ends(&reading);
        all.push(reading);
        all.extend(more);
    }
    all
}

fn unchanged(old: &str, new: &str) -> Variant {
    Variant { old: old.to_owned(), new: new.to_owned(), how: "", at_start: false, at_end: false, at_eof: false, unfenced: false }
}

/// Creates a variant that matches whole lines. If only one of the two texts has a final line break, that line break is
/// removed.
fn lines(old: &str, new: &str, how: &'static str) -> Variant {
    let old = if old.ends_with('\n') && !new.ends_with('\n') && !new.is_empty() { &old[..old.len() - 1] } else { old };
    let new = if new.ends_with('\n') && !old.ends_with('\n') { &new[..new.len() - 1] } else { new };
    Variant { how, at_start: true, at_end: true, ..unchanged(old, new) }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn without_blank_lines(variant: &Variant) -> Option<Variant> {
    let old: Vec<&str> = variant.old.split_inclusive('\n').collect();
    let before = old.iter().take_while(|line| is_blank(line)).count();
    let after = old.iter().rev().take_while(|line| is_blank(line)).count();
    if before + after == 0 || before == old.len() {
        return None;
    }
    let kept = old[before..old.len() - after].concat();
    let new: Vec<&str> = variant.new.split_inclusive('\n').collect();
    let from = new.iter().take(before).take_while(|line| is_blank(line)).count();
    let upto = new[from..].iter().rev().take(after).take_while(|line| is_blank(line)).count();
    let new = new[from..new.len() - upto].concat();
    let how = if variant.how.is_empty() { "without the empty lines around it" } else { variant.how };
    let ends = lines(&kept, &new, how);
    let (old, new) = if after > 0 { (ends.old, ends.new) } else { (kept, new) };
    Some(Variant {
        old,
        new,
        how,
        at_start: variant.at_start || before > 0,
        at_end: variant.at_end || after > 0,
        ..variant.clone()
    })
}

fn without_last_break(variant: &Variant) -> Option<Variant> {
    let old = variant.old.strip_suffix('\n').filter(|old| !is_blank(old))?;
    let new = variant.new.strip_suffix('\n').unwrap_or(&variant.new);
    let how = if variant.how.is_empty() { "without the line break at its end" } else { variant.how };
    Some(Variant { old: old.to_owned(), new: new.to_owned(), how, at_eof: true, ..variant.clone() })
}

/// Creates a variant for a file whose lines end with lone CRs.
fn carriage_returns(text: &str, old: &str, new: &str) -> Option<Variant> {
    if !old.contains('\n') || text.contains('\n') || !text.contains('\r') {
        return None;
    }
    let how = "with the CR line endings of the file";
    Some(Variant { how, ..unchanged(&old.replace('\n', "\r"), &new.replace('\n', "\r")) })
}

/// Removes line numbers that come from a view of the file.
fn strip_line_numbers(text: &str, old: &str, new: &str) -> Option<Variant> {
    let mut kind = None;
    let mut last = None;
    let mut stripped = String::with_capacity(old.len());
    for line in old.split_inclusive('\n') {
        let (number, found, rest) = number(line)?;
        let follows = last.is_none_or(|last: u64| number == last + 1);
        if !follows || (found.is_some() && kind.is_some() && found != kind) {
            return None;
        }
        (last, kind) = (Some(number), kind.or(found));
        stripped.push_str(rest);
    }
    let kind = kind?;
    // `12: line` and `12:line` look alike for indented lines; the file decides.
    let spaced = matches!(kind, ':' | '|') && occurs_only_unindented(text, &stripped);
    let unspaced = |line: &'_ str| -> String { line.strip_prefix(' ').filter(|_| spaced).unwrap_or(line).to_owned() };
    let mut last = None;
    let mut bare = |line| {
        let (number, _, rest) = number(line).filter(|(number, found, _)| match found {
            Some(found) => *found == kind,
            // A number alone may be file content.
            None => last.is_some_and(|last: u64| *number == last + 1),
        })?;
        last = Some(number);
        Some(unspaced(rest))
    };
    let new: String = new.split_inclusive('\n').map(|line| bare(line).unwrap_or_else(|| line.to_owned())).collect();
    let old: String = stripped.split_inclusive('\n').map(unspaced).collect();
    let how = "without its line numbers";
    (!is_blank(&old)).then(|| lines(&old, &new, how))
}

/// Returns whether all lines start with a space but occur in the text only without it.
fn occurs_only_unindented(text: &str, lines: &str) -> bool {
    let known: HashSet<&str> = text.lines().map(str::trim_end).collect();
    lines
        .lines()
        .filter(|line| !is_blank(line))
        .all(|line| line.strip_prefix(' ').is_some_and(|rest| known.contains(rest.trim_end())))
}

/// Parses a line number, the separator, and the text that follows. If there is only a number, the line was empty and
/// has no separator.
fn number(line: &str) -> Option<(u64, Option<char>, &str)> {
    const DIGITS: usize = 7;
    let text = line.trim_start_matches([' ', '\t']);
    let text = text.strip_prefix('L').filter(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit())).unwrap_or(text);
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    if digits == 0 || digits > DIGITS {
        return None;
    }
    let (number, rest) = (text[..digits].parse().ok()?, &text[digits..]);
    if is_blank(rest) && !rest.starts_with('\t') {
        return Some((number, None, rest.trim_start_matches(' ')));
    }
    let rest = if rest.trim_start_matches(' ').starts_with('|') { rest.trim_start_matches(' ') } else { rest };
    let sign = rest.chars().next().filter(|sign| matches!(sign, '\t' | '→' | '|' | ':'))?;
    Some((number, Some(sign), &rest[sign.len_utf8()..]))
}

fn strip_fence(old: &str, new: &str) -> Option<Variant> {
    let inner = unfence(old)?;
    let new = match unfence(new) {
        Some(new) => new,
        None if new.lines().any(|line| fence(line).is_some()) => return None,
        None => new.to_owned(),
    };
    let variant = lines(&inner, &new, "without the code fence around it");
    (!is_blank(&inner)).then_some(Variant { unfenced: true, ..variant })
}

fn unfence(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = lines.iter().position(|line| !is_blank(line))?;
    let last = lines.iter().rposition(|line| !is_blank(line))?;
    let closed = fence(lines[first])? == fence(lines[last])? && lines[last].trim().len() == fence(lines[last])?.len();
    (first < last && closed).then(|| lines[first + 1..last].concat())
}

/// Returns the marker if the line opens or closes a code block.
pub(super) fn fence(line: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|fence| line.trim_start().starts_with(fence))
}

/// Unescapes line breaks, tabs and quotes that were escaped once too often.
fn escaped(old: &str, new: &str) -> Option<Variant> {
    const SIGNS: &[(char, char)] = &[('n', '\n'), ('t', '\t'), ('r', '\r'), ('"', '"'), ('\'', '\''), ('\\', '\\')];
    let meant = unescape(old, SIGNS)?;
    let both = |text: &str| text.trim_end_matches('\n').contains('\n') && unescape(text, &SIGNS[..1]).is_some();
    // If some breaks are real, the others may be literal.
    if both(new) || (both(old) && unescape(new, SIGNS).is_some()) {
        return None;
    }
    let new = unescape(new, SIGNS).unwrap_or_else(|| new.to_owned());
    let open = |text: &str| text.lines().any(|line| line.matches('"').count() % 2 == 1);
    // A break within quotes is literal.
    if open(&new) && !open(&meant) {
        return None;
    }
    Some(Variant { how: "with its escapes (`\\n`, `\\t`, `\\\"`) decoded", ..unchanged(&meant, &new) })
}

/// Unescapes only quotes.
fn quoted(old: &str, new: &str) -> Option<Variant> {
    const SIGNS: &[(char, char)] = &[('"', '"'), ('\'', '\''), ('`', '`')];
    let meant = unescape(old, SIGNS)?;
    let new = unescape(new, SIGNS).unwrap_or_else(|| new.to_owned());
    Some(Variant { how: "with its quotes unescaped", ..unchanged(&meant, &new) })
}

/// Unescapes the text. Returns `None` if it contains no escapes.
fn unescape(text: &str, signs: &[(char, char)]) -> Option<String> {
    let mut result = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut any = false;
    while let Some(letter) = letters.next() {
        let meant = letters.peek().filter(|_| letter == '\\').and_then(|next| signs.iter().find(|(sign, _)| sign == next));
        match meant {
            Some((_, meant)) => {
                letters.next();
                result.push(*meant);
                any = true;
            }
            None => result.push(letter),
        }
    }
    any.then_some(result)
}

fn entities(old: &str, new: &str) -> Option<Variant> {
    let meant = decode_entities(old);
    (meant != old).then(|| Variant { how: "with its HTML entities decoded", ..unchanged(&meant, &decode_entities(new)) })
}

/// Decodes HTML entities. `&amp;` is decoded last, so no entity is decoded twice.
fn decode_entities(text: &str) -> String {
    const ENTITIES: &[(&str, &str)] =
        &[("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&apos;", "'"), ("&amp;", "&")];
    ENTITIES.iter().fold(text.to_owned(), |text, (entity, sign)| text.replace(entity, sign))
}

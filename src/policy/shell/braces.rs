//! Brace expansion: `{a,b}`, `{1..9}`.

use super::values::UNKNOWN;
use super::word::{Piece, Word};

/// Words that the braces of one word may make, and the letters that may be copied for it.
const MOST_WORDS: usize = 8192;
const MOST_COPIED: usize = 100_000;
/// Numbers of a sequence that are written out; the rest of a longer one stands as unknown.
const MOST_NUMBERS: usize = 64;

/// Brace expansion, which comes before all others.
pub fn braces(word: &Word) -> Option<Vec<Word>> {
    if !word.raw.contains('{') {
        return Some(vec![word.clone()]);
    }
    let mut atoms = Vec::new();
    for piece in &word.pieces {
        match piece {
            Piece::Text { text, quoted: false } => atoms.extend(text.chars().map(Atom::Char)),
            other => atoms.push(Atom::Piece(other.clone())),
        }
    }
    let mut results = Vec::new();
    let mut budget = MOST_COPIED + atoms.len() * 4;
    expand_braces(&atoms, &mut results, &mut budget)?;
    Some(results.into_iter().map(assemble).collect())
}

#[derive(Debug, Clone)]
enum Atom {
    Char(char),
    Piece(Piece),
}

fn assemble(atoms: Vec<Atom>) -> Word {
    let mut word = Word::default();
    for atom in atoms {
        match atom {
            Atom::Piece(piece) => word.pieces.push(piece),
            Atom::Char(character) => {
                if let Some(Piece::Text { text, quoted: false }) = word.pieces.last_mut() {
                    text.push(character);
                } else {
                    word.pieces.push(Piece::Text { text: character.to_string(), quoted: false });
                }
            }
        }
    }
    word
}

/// `None` where it comes to too many words.
fn expand_braces(atoms: &[Atom], results: &mut Vec<Vec<Atom>>, budget: &mut usize) -> Option<()> {
    *budget = budget.checked_sub(atoms.len() + 1)?;
    if results.len() >= MOST_WORDS {
        return None;
    }
    let last = atoms.iter().rposition(|atom| matches!(atom, Atom::Char('}'))).unwrap_or(0);
    for (open, atom) in atoms.iter().enumerate().take(last) {
        if !matches!(atom, Atom::Char('{')) {
            continue;
        }
        *budget = budget.checked_sub((last - open) / 8)?;
        if let Some((close, options)) = brace_options(atoms, open) {
            for option in options {
                let mut whole = atoms[..open].to_vec();
                whole.extend(option);
                whole.extend_from_slice(&atoms[close + 1..]);
                expand_braces(&whole, results, budget)?;
            }
            return Some(());
        }
    }
    results.push(atoms.to_vec());
    Some(())
}

/// The alternatives of the brace at `open` and where it closes.
fn brace_options(atoms: &[Atom], open: usize) -> Option<(usize, Vec<Vec<Atom>>)> {
    let (mut depth, mut from) = (0_usize, open + 1);
    let mut options = Vec::new();
    for (at, atom) in atoms.iter().enumerate().skip(open) {
        match atom {
            Atom::Char('{') => depth += 1,
            Atom::Char(',') if depth == 1 => {
                options.push(atoms[from..at].to_vec());
                from = at + 1;
            }
            Atom::Char('}') => {
                depth -= 1;
                if depth == 0 {
                    let last = atoms[from..at].to_vec();
                    if options.is_empty() {
                        return sequence(&last).map(|options| (at, options));
                    }
                    options.push(last);
                    return Some((at, options));
                }
            }
            Atom::Char(_) | Atom::Piece(_) => {}
        }
    }
    None
}

/// `{a..e}`, `{1..9}`, `{01..20..2}`.
fn sequence(inner: &[Atom]) -> Option<Vec<Vec<Atom>>> {
    let text: Option<String> = inner.iter().map(|atom| if let Atom::Char(c) = atom { Some(*c) } else { None }).collect();
    let text = text?;
    let mut ends = text.split("..");
    let (from, to, step) = (ends.next()?, ends.next()?, ends.next().map(str::parse::<i64>));
    if ends.next().is_some() {
        return None;
    }
    let step = usize::try_from(step.transpose().ok()?.unwrap_or(1).unsigned_abs()).unwrap_or(1).max(1);
    let number = |text: &str| text.parse::<i32>().ok();
    let texts: Vec<String> = if let (Some(first), Some(last)) = (number(from), number(to)) {
        let padded = [from, to].iter().any(|end| end.trim_start_matches('-').starts_with('0') && end.len() > 1);
        let width = if padded { from.len().max(to.len()) } else { 0 };
        let mut numbers: Vec<i32> = (first.min(last)..=first.max(last)).step_by(step).take(MOST_NUMBERS + 1).collect();
        let more = numbers.len() > MOST_NUMBERS;
        numbers.truncate(MOST_NUMBERS);
        if first > last {
            for number in &mut numbers {
                *number = number.saturating_sub(last).saturating_neg().saturating_add(first);
            }
        }
        let shown = numbers.iter().map(|number| format!("{number:0width$}"));
        shown.chain(more.then(|| UNKNOWN.to_string())).collect()
    } else {
        // Any other letter stands for itself.
        let single = |text: &str| text.chars().next().filter(|letter| letter.is_ascii() && text.len() == 1);
        let (first, last) = (single(from)?, single(to)?);
        let mut letters: Vec<char> = (first.min(last)..=first.max(last)).step_by(step).collect();
        if first > last {
            letters.reverse();
        }
        letters.iter().map(char::to_string).collect()
    };
    Some(texts.iter().map(|text| text.chars().map(Atom::Char).collect()).collect())
}

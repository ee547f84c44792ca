//! Detection of words that mix scripts and may therefore imitate other words.

use unicode_script::{Script, UnicodeScript};

/// Scripts, including Latin, that are commonly combined in East Asian words.
const TOGETHER: [Script; 6] = [Script::Latin, Script::Han, Script::Hiragana, Script::Katakana, Script::Bopomofo, Script::Hangul];

/// Returns the first word that combines incompatible scripts, with the names of two of these scripts.
pub(crate) fn find_mixed_word(text: &str) -> Option<(&str, [&'static str; 2])> {
    if text.is_ascii() {
        return None;
    }
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_ascii());
    words.into_iter().find_map(|word| Some((word, scripts(word)?)))
}

fn scripts(word: &str) -> Option<[&'static str; 2]> {
    let mut all =
        word.chars().map(|letter| letter.script()).filter(|script| !matches!(script, Script::Common | Script::Inherited));
    let first = all.next()?;
    let goes_with = |other: Script| other == first || (TOGETHER.contains(&first) && TOGETHER.contains(&other));
    let other = all.find(|script| !goes_with(*script))?;
    Some([first.full_name(), other.full_name()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_script_words_are_detected_unless_their_language_mixes_scripts() {
        for (text, found) in [
            ("git p\u{443}sh origin", Some(("p\u{443}sh", ["Latin", "Cyrillic"]))),
            ("\u{440}ip install", Some(("\u{440}ip", ["Cyrillic", "Latin"]))),
            ("cat src/m\u{3b1}in.rs", Some(("m\u{3b1}in", ["Latin", "Greek"]))),
            ("echo \u{43f}\u{440}\u{438}\u{432}\u{435}\u{442} world", None),
            ("echo na\u{ef}ve stra\u{df}e 2\u{3a9}", None),
            ("cat \u{30d5}\u{30a1}\u{30a4}\u{30eb}test\u{6f22}\u{5b57}.txt", None),
            ("touch \u{444}\u{430}\u{439}\u{43b}-final.txt", None),
            ("git push", None),
        ] {
            assert_eq!(find_mixed_word(text), found, "{text}");
        }
    }
}

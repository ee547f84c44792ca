//! Parsed shell words, which consist of text, quotes, parameters and substitutions.

/// A parsed word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub raw: String,
    pub pieces: Vec<WordPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WordPart {
    Text {
        text: String,
        quoted: bool,
    },
    /// A parameter expansion (`$name` or `${name…}`).
    Parameter {
        parameter: Parameter,
        quoted: bool,
    },
    /// A command substitution (`$(…)` or backticks).
    Substitution {
        inner: String,
        quoted: bool,
    },
    /// An expansion that can be determined only at run time, such as `$((…))` or `<(…)`.
    Opaque,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub name: String,
    pub indirect: bool,
    /// Whether the parameter represents all elements of an array as separate words.
    pub all: bool,
    /// Whether the parameter is `$*` or `${x[*]}`, which becomes a single word when quoted.
    pub star: bool,
    /// Operator that follows the name, such as `:-`, `#` or `,,`.
    pub operator: String,
    pub operand: Option<Box<Word>>,
}

impl Word {
    /// Returns the text of the word, or `None` if it contains expansions.
    pub(crate) fn literal(&self) -> Option<String> {
        let mut whole = String::new();
        for piece in &self.pieces {
            match piece {
                WordPart::Text { text, .. } => whole.push_str(text),
                WordPart::Parameter { .. } | WordPart::Substitution { .. } | WordPart::Opaque => return None,
            }
        }
        Some(whole)
    }

    pub(crate) fn is_quoted(&self) -> bool {
        self.pieces.iter().any(|piece| match piece {
            WordPart::Text { quoted, .. } | WordPart::Parameter { quoted, .. } | WordPart::Substitution { quoted, .. } => *quoted,
            WordPart::Opaque => false,
        })
    }

    /// Appends text to the last piece if it is quoted in the same way; otherwise adds a new piece.
    pub(crate) fn push_text(&mut self, addition: &str, quotes: bool) {
        if let Some(WordPart::Text { text, quoted }) = self.pieces.last_mut()
            && *quoted == quotes
        {
            text.push_str(addition);
        } else {
            self.pieces.push(WordPart::Text { text: addition.to_owned(), quoted: quotes });
        }
    }
}

//! Parts of one shell word: text, quoting, parameters, substitutions.

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
    /// An expansion of a parameter: `$name`, `${name…}`.
    Parameter {
        parameter: Parameter,
        quoted: bool,
    },
    /// A command substitution: `$(…)`, backticks.
    Substitution {
        inner: String,
        quoted: bool,
    },
    /// An expansion known only at run time: `$((…))`, `<(…)`.
    Opaque,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub name: String,
    pub indirect: bool,
    /// Whether the parameter means all elements of an array, each as a separate word.
    pub all: bool,
    /// Whether the parameter is `$*` or `${x[*]}`, which in quotes is one word of all elements.
    pub star: bool,
    /// Operator after the name: `:-word`, `#prefix`, `,,`.
    pub operator: String,
    pub operand: Option<Box<Word>>,
}

impl Word {
    /// Returns the text if it depends only on the word itself.
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

    /// Appends text to the last piece, or adds a new piece.
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

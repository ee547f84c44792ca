//! Parsing of Codex command rules, which are `prefix_rule(…)` calls in a subset of Starlark.

/// Maximum nesting depth of lists.
const MAX_DEPTH: usize = 8;

/// Rule that applies to commands beginning with certain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PrefixRule {
    pub line: usize,
    /// Words of the pattern. Each word is given as a list of alternatives.
    pub pattern: Vec<Vec<String>>,
    pub decision: String,
}

/// Line number of an error, and its description.
pub(super) type Mistake = (usize, String);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(String),
    List(Vec<Value>),
}

/// Parses the rules in a file. Returns the valid rules, and an error for each invalid one.
pub(super) fn parse(text: &str) -> (Vec<PrefixRule>, Vec<Mistake>) {
    let (mut rules, mut mistakes) = (Vec::new(), Vec::new());
    let mut reader = Reader { text, at: 0 };
    loop {
        reader.skip_space();
        if reader.rest().is_empty() {
            return (rules, mistakes);
        }
        let line = reader.line();
        let name = reader.name();
        let read = match name.as_str() {
            "prefix_rule" => reader.rule(line).map(|rule| rules.push(rule)),
            "" => Err("expected `prefix_rule(…)`".to_owned()),
            other => reader.skip_call().and(Err(format!("`{other}` is not supported; only `prefix_rule` is"))),
        };
        if let Err(why) = read {
            mistakes.push((line, why));
            reader.skip_to_next_rule();
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn line(&self) -> usize {
        1 + self.text[..self.at].matches('\n').count()
    }

    /// Skips any white space and comments.
    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let space = rest.len() - rest.trim_start().len();
            let comment = if rest[space..].starts_with('#') { rest[space..].find('\n').unwrap_or(rest.len() - space) } else { 0 };
            self.at += space + comment;
            if comment == 0 {
                return;
            }
        }
    }

    fn take(&mut self, expected: char) -> bool {
        self.skip_space();
        let is_there = self.rest().starts_with(expected);
        if is_there {
            self.at += expected.len_utf8();
        }
        is_there
    }

    fn name(&mut self) -> String {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        self.at += end;
        name
    }

    fn rule(&mut self, line: usize) -> Result<PrefixRule, String> {
        if !self.take('(') {
            return Err("expected `(` after `prefix_rule`".to_owned());
        }
        let (mut pattern, mut decision) = (None, "allow".to_owned());
        while !self.take(')') {
            let key = self.name();
            if key.is_empty() || !self.take('=') {
                return Err("expected `name = value`".to_owned());
            }
            let value = self.value(0)?;
            match (key.as_str(), value) {
                ("pattern", Value::List(words)) => pattern = Some(words),
                ("decision", Value::Text(text)) => decision = text,
                ("pattern" | "decision", _) => return Err(format!("`{key}` has the wrong type")),
                _ => {}
            }
            if !self.take(',') && !self.rest().starts_with(')') {
                return Err("expected `,` or `)`".to_owned());
            }
        }
        let words = pattern.ok_or("`pattern` is missing")?;
        let alternatives = |word: Value| match word {
            Value::Text(word) => Ok(vec![word]),
            Value::List(words) => words
                .into_iter()
                .map(|word| match word {
                    Value::Text(word) => Ok(word),
                    Value::List(_) => Err("`pattern` must be a list of words and lists of words".to_owned()),
                })
                .collect(),
        };
        let pattern: Vec<Vec<String>> = words.into_iter().map(alternatives).collect::<Result<_, String>>()?;
        if pattern.is_empty() || pattern.iter().any(Vec::is_empty) {
            return Err("`pattern` is empty".to_owned());
        }
        Ok(PrefixRule { line, pattern, decision })
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        self.skip_space();
        if depth > MAX_DEPTH {
            return Err("the lists are nested too deeply".to_owned());
        }
        match self.rest().chars().next() {
            Some('[' | '(') => {
                self.at += 1;
                let mut values = Vec::new();
                while !self.take(']') && !self.take(')') {
                    values.push(self.value(depth + 1)?);
                    if !self.take(',') && !self.rest().starts_with([']', ')']) {
                        return Err("expected `,` or `]`".to_owned());
                    }
                }
                Ok(Value::List(values))
            }
            Some(quote @ ('"' | '\'')) => self.text(quote).map(Value::Text),
            _ => Err("expected a string or a list".to_owned()),
        }
    }

    fn text(&mut self, quote: char) -> Result<String, String> {
        self.at += 1;
        let mut text = String::new();
        let mut letters = self.rest().char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\n' => break,
                '\\' => match letters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, escaped)) => text.push(escaped),
                    None => break,
                },
                letter if letter == quote => {
                    self.at += at + 1;
                    return Ok(text);
                }
                letter => text.push(letter),
            }
        }
        Err("the string is not closed".to_owned())
    }

    /// Skips the arguments of a function call.
    fn skip_call(&mut self) -> Result<(), String> {
        if !self.take('(') {
            return Ok(());
        }
        let mut open = 1;
        while open > 0 {
            self.skip_space();
            match self.rest().chars().next() {
                Some(quote @ ('"' | '\'')) => drop(self.text(quote)?),
                Some(letter) => {
                    open += match letter {
                        '(' | '[' | '{' => 1,
                        ')' | ']' | '}' => -1,
                        _ => 0,
                    };
                    self.at += letter.len_utf8();
                }
                None => return Err("the call is not closed".to_owned()),
            }
        }
        Ok(())
    }

    /// Skips ahead to the next line on which a rule starts.
    fn skip_to_next_rule(&mut self) {
        let next = self.rest().find("\nprefix_rule");
        self.at = next.map_or(self.text.len(), |next| self.at + next + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rules_are_parsed_and_mistakes_are_reported_with_their_line() {
        let text = "# mine\nprefix_rule(\n    pattern = [\"gh\", \"pr\", [\"view\", 'list']], # words\n    decision = \"prompt\",\n    \
                    match = [\"gh pr view 1\", [\"gh\", \"pr\", \"list\"]],\n)\nprefix_rule(pattern=[\"ls\"])\nhost_executable(name = \"git\", \
                    paths = [\"/usr/bin/git\"])\nprefix_rule(pattern = [1])\nprefix_rule(decision = \"allow\")\nprefix_rule(pattern = \
                    [\"rm\"], decision = \"forbidden\")\n";
        let (rules, mistakes) = parse(text);
        let words = |words: &[&[&str]]| -> Vec<Vec<String>> {
            words.iter().map(|word| word.iter().map(|one| (*one).to_owned()).collect()).collect()
        };
        let rule = |line, pattern, decision: &str| PrefixRule { line, pattern, decision: decision.to_owned() };
        assert_eq!(
            rules,
            [
                rule(2, words(&[&["gh"], &["pr"], &["view", "list"]]), "prompt"),
                rule(7, words(&[&["ls"]]), "allow"),
                rule(11, words(&[&["rm"]]), "forbidden"),
            ]
        );
        let lines: Vec<usize> = mistakes.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [8, 9, 10], "{mistakes:?}");
    }

    proptest! {
        #[test]
        fn parsing_any_text_terminates(text in "(prefix_rule\\(|pattern|=|\\[|\\]|\\(|\\)|\"a|\"|'|,|#|\n| |é|\\\\){0,40}") {
            let (rules, mistakes) = parse(&text);
            prop_assert!(rules.len() + mistakes.len() <= text.len() + 1);
        }
    }
}

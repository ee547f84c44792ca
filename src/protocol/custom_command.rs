//! Custom slash commands: Markdown files whose text is used as a prompt.

use serde::{Deserialize, Serialize};

/// Highest numbered placeholder: `$9`.
const MAX_NUMBERED: usize = 9;

/// Definitions of the built-in prompt commands, sorted by name.
const BUILT_IN_TEXTS: [&str; 1] = [include_str!("../../assets/commands/init.md")];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomCommand {
    /// Name without the slash: `fix`, or `git:commit` for `commit` in the folder `git`.
    pub name: String,
    /// One-line description.
    pub description: String,
    /// Hint that shows the expected arguments, such as `[file]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// Prompt text without the front matter.
    pub text: String,
    /// Path of the source file, as shown to the user.
    pub source: String,
}

impl CustomCommand {
    /// Names of the built-in commands that are prompts.
    pub const BUILT_IN_NAMES: [&str; 1] = ["init"];

    /// Returns whether the command has this name. A command or skill of a plugin can also be named `PLUGIN:NAME`.
    pub fn is_named(&self, name: &str) -> bool {
        let of_plugin = || {
            let (plugin, name) = name.split_once(':')?;
            Some(self.name == name && self.source.starts_with(&format!("plugin:{plugin}/")))
        };
        self.name == name || of_plugin().unwrap_or_default()
    }

    /// Returns the built-in command with this name, or `None` if it is not a prompt command.
    pub fn built_in(name: &str) -> Option<Self> {
        let position = Self::BUILT_IN_NAMES.iter().position(|known| *known == name)?;
        Some(Self::parse(name.to_owned(), "aye".to_owned(), BUILT_IN_TEXTS[position]).0)
    }

    /// Parses a command file. Returns the command and notices about errors in the front matter, which are not fatal.
    pub fn parse(name: String, source: String, content: &str) -> (Self, Vec<String>) {
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        let (front, text) = front_matter(content);
        let mut notices = Vec::new();
        let (mut description, mut argument_hint) = (None, None);
        match front {
            None => {}
            Some(Err(())) => notices.push(format!("`{source}`: the front matter is not closed; end it with a line `---`")),
            Some(Ok(front)) => {
                for line in front.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')) {
                    // Indented lines and list items belong to the key above them.
                    if line.starts_with([' ', '\t', '-']) {
                        continue;
                    }
                    match line.split_once(':').map(|(key, value)| (key.trim(), unquote(value))) {
                        Some(("description", value)) => description = Some(value),
                        Some(("argument-hint" | "argument_hint", value)) => argument_hint = Some(value),
                        Some((key, _)) => notices.push(format!("`{source}`: `{key}` in the front matter has no effect here")),
                        None => notices
                            .push(format!("`{source}`: `{}` in the front matter is not in the form `key: value`", line.trim())),
                    }
                }
            }
        }
        let first_line = || {
            let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            line.trim_start_matches('#').trim().to_owned()
        };
        let description = description.filter(|words| !words.is_empty()).unwrap_or_else(first_line);
        let argument_hint = argument_hint.filter(|hint| !hint.is_empty());
        let text = text.trim().to_owned();
        if text.is_empty() {
            notices.push(format!("`{source}` has no text to use as the prompt"));
        }
        (Self { name, description, argument_hint, text, source }, notices)
    }

    /// Returns whether the command requires arguments, which is the case if its hint does not start with `[`.
    pub fn needs_arguments(&self) -> bool {
        self.argument_hint.as_ref().is_some_and(|hint| !hint.starts_with('['))
    }

    /// Splits arguments into words as a shell does.
    pub fn split_arguments(arguments: &str) -> Vec<String> {
        split_quoted(arguments)
    }

    /// Returns the prompt with the arguments filled in. If the text has no placeholder, the arguments are appended.
    /// Placeholders inside arguments are not expanded.
    pub fn expand(&self, arguments: &str) -> String {
        let arguments = arguments.trim();
        let words = split_quoted(arguments);
        let (mut out, mut rest, mut took) = (String::new(), self.text.as_str(), false);
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let digit = after.chars().next().and_then(|letter| letter.to_digit(10)).map(|digit| digit as usize);
            let is_number = |at: usize| !after[1..].starts_with(|next: char| next.is_ascii_digit()) && at >= 1;
            if let Some(behind) = after.strip_prefix("ARGUMENTS").filter(|behind| !continues(behind)) {
                out.push_str(arguments);
                (rest, took) = (behind, true);
            } else if let Some(at) = digit.filter(|at| *at <= MAX_NUMBERED && is_number(*at)) {
                out.push_str(words.get(at - 1).map_or("", String::as_str));
                (rest, took) = (&after[1..], true);
            } else {
                out.push('$');
                rest = after;
            }
        }
        out.push_str(rest);
        if !took && !arguments.is_empty() {
            out.push_str("\n\n");
            out.push_str(arguments);
        }
        out
    }
}

/// Returns whether the text starts with an identifier character, which would extend a preceding placeholder name.
fn continues(behind: &str) -> bool {
    behind.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
}

/// Splits the front matter, which is enclosed in `---` lines at the start, from the body. Returns an error if the
/// closing line is missing.
fn front_matter(content: &str) -> (Option<Result<&str, ()>>, &str) {
    let Some(rest) = content.strip_prefix("---").and_then(|rest| rest.trim_start_matches(['\r', ' ']).strip_prefix('\n')) else {
        return (None, content);
    };
    let mut start = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (Some(Ok(&rest[..start])), &rest[start + line.len()..]);
        }
        start += line.len();
    }
    (Some(Err(())), content)
}

fn unquote(value: &str) -> String {
    let value = value.trim();
    let inner = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    inner.unwrap_or(value).trim().to_owned()
}

/// Splits arguments into words as a shell does. Quotes group several words into one.
fn split_quoted(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut open) = (String::new(), None, false);
    for letter in arguments.chars() {
        match (quote, letter) {
            (Some(ends), letter) if letter == ends => quote = None,
            (Some(_), letter) => word.push(letter),
            // An apostrophe within a word is an ordinary character.
            (None, '"') => (quote, open) = (Some('"'), true),
            (None, '\'') if word.is_empty() => (quote, open) = (Some('\''), true),
            (None, letter) if letter.is_whitespace() => {
                if open || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            (None, letter) => word.push(letter),
        }
    }
    if open || !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn command(content: &str) -> (CustomCommand, Vec<String>) {
        CustomCommand::parse("fix".to_owned(), "commands/fix.md".to_owned(), content)
    }

    #[test]
    fn a_command_of_a_plugin_can_be_named_with_its_plugin() {
        let of = |source: &str| CustomCommand { source: source.to_owned(), ..command("Fix it").0 };
        assert!(of("plugin:demo/commands/fix.md").is_named("demo:fix"));
        assert!(of("plugin:demo/commands/fix.md").is_named("fix"));
        assert!(!of("plugin:demo/commands/fix.md").is_named("other:fix"));
        assert!(!of("commands/fix.md").is_named("demo:fix"));
    }

    #[test]
    fn arguments_replace_placeholders_or_follow_the_text() {
        for (text, arguments, expected) in [
            ("Fix $ARGUMENTS now", "the parser", "Fix the parser now"),
            ("Fix $1 in $2", "bug src/a.rs more", "Fix bug in src/a.rs"),
            ("Fix $1 and $2", "\"two words\" x", "Fix two words and x"),
            ("Fix $1|$3|", "a", "Fix a||"),
            ("Fix it", "", "Fix it"),
            ("Fix it", "and test", "Fix it\n\nand test"),
            ("$ARGUMENTS_X $0 $10 costs $ 5 $", "a", "$ARGUMENTS_X $0 $10 costs $ 5 $\n\na"),
            ("say $1", "it's fine", "say it's"),
            ("say $ARGUMENTS", "$1 $ARGUMENTS", "say $1 $ARGUMENTS"),
            ("look at @$1 and !`date`", "src/größe.rs", "look at @src/größe.rs and !`date`"),
        ] {
            assert_eq!(command(text).0.expand(arguments), expected, "{text}");
        }
    }

    #[test]
    fn front_matter_is_parsed_and_unsupported_keys_are_reported() {
        let (read, notices) = command(
            "---\ndescription: \"Fix an issue\"\nargument-hint: <number>\nmodel: opus\ntools:\n  - x\n---\n# Do\nFix it\n",
        );
        assert_eq!((read.description.as_str(), read.argument_hint.as_deref()), ("Fix an issue", Some("<number>")));
        assert!(read.needs_arguments());
        assert_eq!(read.text, "# Do\nFix it");
        assert_eq!(
            notices,
            ["model", "tools"].map(|key| format!("`commands/fix.md`: `{key}` in the front matter has no effect here"))
        );
        let (read, notices) = command("# Tidy up\nand more");
        assert_eq!((read.description.as_str(), notices.len()), ("Tidy up", 0));
        let (read, notices) = command("---\ndescription: x\nno end");
        assert!(read.text.starts_with("---") && notices[0].contains("not closed"), "{notices:?}");
        assert!(command("---\n---\n").1[0].contains("no text"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(content in "(---\n)?[a-z:$1-9\"' \n#-]{0,80}", arguments in "[a-z$\"' 1é]{0,40}") {
            let (read, _) = command(&content);
            read.expand(&arguments);
        }
    }
}

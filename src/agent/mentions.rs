//! Mentions in a prompt: `@src/main.rs` for files and line ranges, and `@server:uri` for MCP server resources.

use super::limits::MAX_MENTIONS;
use crate::protocol::{ARTIFACT_SCHEME, CallArguments, CallId, ToolCall, without_input};
use serde_json::{Map, Value};

/// File, directory or server resource mentioned in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub path: String,
    /// First and last line (1-based).
    pub lines: Option<(u64, u64)>,
    /// Server that provides the resource. The path then begins with the server's name.
    pub server: Option<String>,
}

impl Mention {
    /// Returns a call that reads the mentioned file or directory.
    pub(crate) fn call(&self, number: usize) -> ToolCall {
        let mut arguments = Map::new();
        arguments.insert("path".to_owned(), Value::String(self.path.clone()));
        if let Some((first, last)) = self.lines {
            arguments.insert("offset".to_owned(), first.into());
            arguments.insert("limit".to_owned(), (last - first + 1).into());
        }
        let tool_name = if self.path.ends_with('/') { "ListDirectory" } else { "ReadFile" };
        ToolCall {
            tool_call_id: CallId::new(format!("mention_{number}")),
            tool_name: tool_name.to_owned(),
            arguments: CallArguments::Object(arguments),
        }
    }

    /// Returns the server and the URI of a mentioned resource, or `None` if the mention is not a resource.
    pub(crate) fn resource(&self) -> Option<(String, String)> {
        let server = self.server.clone()?;
        let uri = self.path.get(server.len() + 1..)?.to_owned();
        Some((server, uri))
    }

    /// Returns whether the mention can only refer to a file. A bare `@name` could also be a user name or a decorator.
    pub(crate) fn is_a_path(&self) -> bool {
        self.path.contains(['/', '.'])
    }
}

/// Returns the distinct mentions in a prompt in order, up to a limit. `servers` lists the servers whose resources can
/// be mentioned. Mentions in attached input are ignored.
pub(crate) fn mentions(text: &str, servers: &[String]) -> Vec<Mention> {
    let text = without_input(text);
    let mut found: Vec<Mention> = Vec::new();
    let mut before = None;
    for (at, letter) in text.char_indices() {
        let begins = letter == '@' && before.is_none_or(|one: char| one.is_whitespace() || "([{<\"'`,;".contains(one));
        before = Some(letter);
        if begins
            && let Some(mention) = mention(&text[at + 1..], servers)
            && !found.contains(&mention)
        {
            found.push(mention);
            if found.len() == MAX_MENTIONS {
                break;
            }
        }
    }
    found
}

fn mention(rest: &str, servers: &[String]) -> Option<Mention> {
    let of_server = |path: &str| {
        let (name, _) = path.split_once(':').filter(|(_, uri)| !uri.is_empty())?;
        servers.iter().find(|server| *server == name).cloned()
    };
    if let Some(quoted) = rest.strip_prefix('"') {
        let (path, after) = quoted.split_once('"').filter(|(path, _)| !path.is_empty() && !path.contains('\n'))?;
        let server = of_server(path);
        let lines = after.strip_prefix(['#', ':']).and_then(lines).filter(|_| server.is_none());
        return Some(Mention { path: path.to_owned(), lines, server });
    }
    let end = rest.find(|one: char| one.is_whitespace() || "\"'`<>()[]{}|,;".contains(one)).unwrap_or(rest.len());
    let word = rest[..end].trim_end_matches(['.', ':', '!', '?']);
    if let Some(server) = of_server(word) {
        return Some(Mention { path: word.to_owned(), lines: None, server: Some(server) });
    }
    let (path, lines) = match word.rsplit_once('#') {
        // The digits of an artifact URI are not a line number.
        None if is_artifact(word) => (word, None),
        Some((path, range)) if lines(range).is_some() => (path, lines(range)),
        _ => with_colon(word),
    };
    (!path.is_empty() && !path.starts_with('@')).then(|| Mention { path: path.to_owned(), lines, server: None })
}

fn is_artifact(word: &str) -> bool {
    let digits = word.strip_prefix(ARTIFACT_SCHEME).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Splits off a line number or range, as in `src/main.rs:10-20`, or in `src/main.rs:10:5` as printed by compilers.
fn with_colon(word: &str) -> (&str, Option<(u64, u64)>) {
    let is_range = |range: &str| range.split('-').all(|line| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()));
    let parted =
        |word| str::rsplit_once(word, ':').filter(|(path, range)| !path.is_empty() && is_range(range) && lines(range).is_some());
    match parted(word) {
        Some((path, range)) => match parted(path).filter(|_| !range.contains('-')) {
            Some((path, line)) => (path, lines(line)),
            None => (path, lines(range)),
        },
        None => (word, None),
    }
}

/// Parses a line range such as `L10`, `10`, `L10-20`, `10-20` or `L10-L20`.
fn lines(range: &str) -> Option<(u64, u64)> {
    let number = |text: &str| {
        let digits = text.strip_prefix(['L', 'l']).unwrap_or(text);
        let digits = digits.find(|one: char| !one.is_ascii_digit()).map_or(digits, |end| &digits[..end]);
        digits.parse::<u64>().ok().filter(|line| *line > 0)
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (number(first)?, number(last)?);
    Some((first.min(last), first.max(last)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_that_begin_with_an_at_sign_are_file_mentions() {
        type Named = (&'static str, Option<(u64, u64)>);
        let cases: &[(&str, &[Named])] = &[
            ("look at @src/main.rs, and (@Cargo.toml).", &[("src/main.rs", None), ("Cargo.toml", None)]),
            ("@src/main.rs:", &[("src/main.rs", None)]),
            (
                "@a.rs#L10-20 @b.rs#7 @c.rs#L3-L1 @d.rs#top",
                &[("a.rs", Some((10, 20))), ("b.rs", Some((7, 7))), ("c.rs", Some((1, 3))), ("d.rs#top", None)],
            ),
            (
                "@src/main.rs:10-20, @a.rs:7: @b.rs:12:5 @c:x @http://h:80",
                &[
                    ("src/main.rs", Some((10, 20))),
                    ("a.rs", Some((7, 7))),
                    ("b.rs", Some((12, 12))),
                    ("c:x", None),
                    ("http://h", Some((80, 80))),
                ],
            ),
            ("@artifact:123456789012 @artifact:ab12", &[("artifact:123456789012", None), ("artifact:ab12", None)]),
            ("@\"my notes/to do.md\" and @\"x y\"#L2", &[("my notes/to do.md", None), ("x y", Some((2, 2)))]),
            ("all of @src/ and again @src/", &[("src/", None)]),
            ("`@types/node` is\n@~/x", &[("types/node", None), ("~/x", None)]),
            ("write to me@example.org @ home, @@ and @", &[]),
            ("@a.rs#L0 @\"", &[("a.rs#L0", None)]),
        ];
        for (text, expected) in cases {
            let found: Vec<_> = mentions(text, &[]).into_iter().map(|one| (one.path, one.lines)).collect();
            let expected: Vec<_> = expected.iter().map(|(path, lines)| ((*path).to_owned(), *lines)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn resource_mentions_consist_of_server_name_and_uri() {
        let servers = ["docs".to_owned(), "git.hub".to_owned()];
        let text = "see @docs:file:///guide.md#L10, @git.hub:issue:80, (@\"docs:a b{c}\") @other:x:1 @docs: and @docs";
        let found: Vec<_> = mentions(text, &servers).into_iter().map(|one| (one.resource(), one.path)).collect();
        let of = |server: &str, uri: &str| (Some((server.to_owned(), uri.to_owned())), format!("{server}:{uri}"));
        assert_eq!(found[..3], [of("docs", "file:///guide.md#L10"), of("git.hub", "issue:80"), of("docs", "a b{c}")]);
        assert!(found[3..].iter().all(|(resource, _)| resource.is_none()), "{found:?}");
    }

    #[test]
    fn mentioned_line_ranges_are_read_and_mentioned_directories_are_listed() {
        let call = |text: &str| mentions(text, &[])[0].call(1);
        let read = call("@a.rs#L10-12");
        assert_eq!(read.tool_name, "ReadFile");
        assert_eq!(serde_json::to_string(&read.arguments).unwrap(), r#"{"path":"a.rs","offset":10,"limit":3}"#);
        assert_eq!(call("@src/").tool_name, "ListDirectory");
    }

    proptest! {
        #[test]
        fn any_text_has_a_bounded_number_of_valid_mentions(text in "[@a/.#L0-9\" \\n(é]{0,200}") {
            let found = mentions(&text, &[]);
            prop_assert!(found.len() <= MAX_MENTIONS);
            for mention in found {
                prop_assert!(!mention.path.is_empty() && text.contains(&mention.path));
                prop_assert!(mention.lines.is_none_or(|(first, last)| first > 0 && first <= last));
            }
        }
    }
}

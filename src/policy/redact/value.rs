//! Determines whether a value is a secret or a placeholder.

/// Statistics about the characters of a string and how much it resembles words.
struct TextStats {
    length: usize,
    lower: usize,
    upper: usize,
    digits: usize,
    distinct: usize,
    /// Number of transitions between a digit and a letter.
    changes: usize,
    /// Number of letters that belong to word-like runs. Such a run has an optional capital followed by at least three
    /// lower-case letters.
    wordy: usize,
    /// Number of pieces, each of which begins with a capital or after a separator. `short` is the number of pieces with
    /// only one or two letters.
    pieces: usize,
    short: usize,
    /// Whether the text contains special characters that occur in passwords but not in names.
    special: bool,
}

impl TextStats {
    fn measure(text: &str) -> Self {
        let mut seen = [false; 128];
        let mut make = Self {
            length: text.chars().count(),
            lower: 0,
            upper: 0,
            digits: 0,
            distinct: 0,
            changes: 0,
            wordy: 0,
            pieces: 0,
            short: 0,
            special: false,
        };
        let mut before = ' ';
        let mut run = 0;
        for letter in text.chars() {
            make.lower += usize::from(letter.is_lowercase());
            make.upper += usize::from(letter.is_uppercase());
            make.digits += usize::from(letter.is_ascii_digit());
            make.special |= "!@#$%^&*?+~".contains(letter);
            make.changes += usize::from(
                (letter.is_ascii_digit() && before.is_alphabetic()) || (letter.is_alphabetic() && before.is_ascii_digit()),
            );
            let slot = seen.get_mut(letter as usize);
            make.distinct += usize::from(slot.as_ref().is_none_or(|seen| !**seen));
            if let Some(slot) = slot {
                *slot = true;
            }
            let goes_on = letter.is_lowercase() && before.is_alphabetic();
            if goes_on {
                run += 1;
            } else {
                make.end_piece(run);
                run = usize::from(letter.is_alphabetic());
            }
            before = letter;
        }
        make.end_piece(run);
        make
    }

    fn end_piece(&mut self, run: usize) {
        self.wordy += if run >= 3 { run } else { 0 };
        self.pieces += usize::from(run > 0);
        self.short += usize::from((1..=2).contains(&run));
    }

    fn letter_count(&self) -> usize {
        self.lower + self.upper
    }

    /// Returns whether the text looks like words. Words are long, whereas random text consists of many short pieces.
    fn reads_like_words(&self) -> bool {
        self.wordy * 10 > self.length * 6 && self.short * 5 < self.pieces * 2
    }
}

/// Returns whether a string looks random and has at least `least` characters.
pub(super) fn is_random(text: &str, least: usize) -> bool {
    let make = TextStats::measure(text);
    if make.length < least || make.distinct < 6.min(least) {
        return false;
    }
    if make.digits > 0 && make.letter_count() > 0 {
        return !make.reads_like_words() || make.changes >= 4;
    }
    make.lower > 0 && make.upper > 0 && make.length >= 12 && !make.reads_like_words()
}

/// Returns whether a string has at least five different characters.
pub(super) fn has_many_letters(text: &str) -> bool {
    TextStats::measure(text).distinct >= 5
}

/// Returns whether a user could have chosen the text as a password. It must contain several kinds of characters and
/// must not be a name.
pub(super) fn is_password(text: &str) -> bool {
    let make = TextStats::measure(text);
    let mixed = make.letter_count() > 0 && (make.digits > 0 || make.special);
    make.length >= 6 && make.distinct >= 4 && (mixed || is_random(text, 8) || (make.digits > 0 && make.special))
}

/// Words in the placeholders of examples. They are recognized anywhere in the text because they are too long to occur
/// by chance.
const STAND_INS: &[&str] = &[
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "change_this",
    "replace",
    "your_",
    "your-",
    "yourkey",
    "yourtoken",
    "yoursecret",
    "yourpass",
    "your key",
    "your token",
    "insert",
    "dummy",
    "redacted",
    "xxxx",
    "****",
    "...",
    "…",
    "•••",
    "1234567890",
    "0123456789",
    "abcdefgh",
    "00000000",
    "deadbeef",
    "foobar",
    "notasecret",
    "not-a-secret",
    "not_a_secret",
];

/// Words written in place of a value.
const WORDS: &[&str] = &[
    "true",
    "false",
    "null",
    "none",
    "nil",
    "undefined",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "token",
    "key",
    "test",
    "testing",
    "value",
    "string",
    "required",
    "optional",
    "hidden",
    "private",
    "public",
    "admin",
    "root",
    "user",
    "username",
    "postgres",
    "mysql",
    "default",
    "empty",
    "todo",
    "unset",
    "mypassword",
    "mysecret",
    "s3cr3t",
    "p@ssw0rd",
    "passw0rd",
];

/// Beginnings of expressions that refer to a value.
const REFERENCES: &[&str] = &[
    "process.env",
    "os.environ",
    "os.getenv",
    "getenv",
    "env.",
    "env:",
    "env(",
    "env[",
    "config.",
    "settings.",
    "secrets.",
    "vault:",
    "op://",
    "ref:",
    "ref+",
    "file:",
    "arn:",
    "ssm:",
    "!ref",
    "!sub",
    "!vault",
    "keychain:",
    "http://",
    "https://",
    "sha1:",
    "sha1-",
    "sha256:",
    "sha256-",
    "sha384-",
    "sha512:",
    "sha512-",
    "md5:",
    "data:",
    "urn:",
    "projects/",
    "enc[",
    "ssh-",
    "age1",
    "fake",
    "mock",
];

/// Returns whether a string is a placeholder.
pub(super) fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    if lower.is_empty() || WORDS.contains(&lower.as_str()) || STAND_INS.iter().any(|word| lower.contains(word)) {
        return true;
    }
    if REFERENCES.iter().any(|start| lower.starts_with(start)) {
        return true;
    }
    let mut letters = text.chars();
    let (first, second, last) =
        (letters.next().unwrap_or(' '), letters.next().unwrap_or(' '), text.chars().last().unwrap_or(' '));
    let wrapped = matches!((first, last), ('<', '>') | ('[', ']') | ('{', '}') | ('%', '%') | ('(', ')'));
    let variable = first == '$' && (matches!(second, '{' | '(' | '_') || second.is_ascii_alphabetic());
    let template = lower.starts_with("{{") || lower.starts_with("<%") || lower.starts_with("#{") || lower.starts_with("%(");
    wrapped || variable || template || has_few_characters(text) || is_path(text)
}

/// Returns whether a string repeats a few characters, as in `xxxxxx`, `--------` or `ababab`.
fn has_few_characters(text: &str) -> bool {
    let mut seen = Vec::new();
    for letter in text.chars() {
        if !seen.contains(&letter) {
            seen.push(letter);
        }
        if seen.len() > 2 {
            return false;
        }
    }
    true
}

fn is_path(text: &str) -> bool {
    let starts = ["/", "./", "../", "~/"].iter().any(|start| text.starts_with(start));
    let drive = text.as_bytes().get(1..3).is_some_and(|rest| rest == b":\\" || rest == b":/");
    drive || (starts && TextStats::measure(text).reads_like_words()) || (text.starts_with("/run/") || text.starts_with("/etc/"))
}

/// Returns whether a string looks like program code, such as `a.b_c`, `Foo::bar` or `next_token()`.
pub(super) fn is_code(text: &str) -> bool {
    if text.contains(['(', ')', '[', ']', '{', '}', '<', '>']) || text.contains("::") || text.contains("->") {
        return true;
    }
    let parts: Vec<&str> = text.split('.').collect();
    let name = |part: &&str| {
        part.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && part.len() < 40
    };
    parts.len() > 1 && parts.iter().all(name)
}

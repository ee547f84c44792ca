//! Detects secrets in a single pass: finds the positions at which a secret could begin and checks each of them.

use super::literals::LiteralSecrets;
use super::token_patterns::{self, SHAPES};
use super::{RedactionRule, SecretSpan, assignment, block, header};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::sync::LazyLock;

/// Type of secret that a trigger word indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TriggerKind {
    Shape(usize),
    WebToken,
    Begin,
    End,
    Putty,
    /// Part of a name whose value may be secret.
    Name,
    Scheme,
    Address,
    Flag,
    Driver,
    /// Telegram bot token: `123456789:AA…`.
    Telegram,
    /// URL that is protected only by its secret path.
    Hook(&'static str),
    /// Azure client secret: `abc8Q~…`.
    Azure,
    /// Discord token, which has three parts, the second of which encodes a time.
    Discord,
    /// Terraform token: `….atlasv1.…`.
    Terraform,
    /// PEM private key that was encoded in Base64 once more.
    EncodedKey,
    /// Mailchimp key: 32 hexadecimal digits followed by a region such as `-us12`.
    Mailchimp,
    /// Line in `~/.pgpass`: `host:port:database:user:password`.
    PasswordFile,
}

/// Words that occur in names of secret values. When one is found, the complete name is checked.
const NAMES: &[&str] = &[
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "auth",
    "jwt",
    "psk",
    "cookie",
    "_pat",
    "kennwort",
    "bearer",
    "sig=",
    "signature",
    "_pw",
    "rootpw",
    "bindpw",
    "adminpw",
    "sas",
];
const HOOKS: &[(&str, &str)] = &[
    ("https://hooks.slack.com/", "slack-webhook"),
    ("https://discord.com/api/webhooks/", "discord-webhook"),
    ("https://discordapp.com/api/webhooks/", "discord-webhook"),
    ("https://hooks.zapier.com/hooks/", "zapier-webhook"),
    ("https://maker.ifttt.com/trigger/", "ifttt-webhook"),
    ("https://outlook.office.com/webhook/", "teams-webhook"),
    ("https://outlook.office365.com/webhook/", "teams-webhook"),
    (".webhook.office.com/webhookb2/", "teams-webhook"),
];

#[derive(Debug)]
pub(super) struct Detectors {
    known: LiteralSecrets,
    rules: Vec<RedactionRule>,
}

/// Built-in patterns, compiled once and shared because they are large.
static BUILT_IN: LazyLock<TriggerIndex> = LazyLock::new(TriggerIndex::new);

struct TriggerIndex {
    /// Automaton that finds the trigger words. `None` only if they exceed its limits, which a test would detect.
    words: Option<AhoCorasick>,
    looks: Vec<TriggerKind>,
}

impl TriggerIndex {
    fn new() -> Self {
        let mut words: Vec<&str> = Vec::new();
        let mut looks = Vec::new();
        let mut add = |word: &'static str, look: TriggerKind| {
            words.push(word);
            looks.push(look);
        };
        for (index, shape) in SHAPES.iter().enumerate() {
            add(shape.start, TriggerKind::Shape(index));
        }
        for name in NAMES {
            add(name, TriggerKind::Name);
        }
        for (start, kind) in HOOKS {
            add(start, TriggerKind::Hook(kind));
        }
        for (word, look) in [
            ("eyJ", TriggerKind::WebToken),
            (block::BEGIN, TriggerKind::Begin),
            ("---- BEGIN SSH2", TriggerKind::Begin),
            ("-----END ", TriggerKind::End),
            ("Private-Lines:", TriggerKind::Putty),
            ("bearer", TriggerKind::Scheme),
            ("basic", TriggerKind::Scheme),
            ("ssws ", TriggerKind::Scheme),
            ("://", TriggerKind::Address),
            ("@tcp(", TriggerKind::Driver),
            ("@unix(", TriggerKind::Driver),
            ("-u", TriggerKind::Flag),
            ("--user", TriggerKind::Flag),
            ("--proxy-user", TriggerKind::Flag),
            ("-p", TriggerKind::Flag),
            ("-a ", TriggerKind::Flag),
            ("-w ", TriggerKind::Flag),
            ("--auth", TriggerKind::Flag),
            ("-b ", TriggerKind::Flag),
            (":A", TriggerKind::Telegram),
            ("Q~", TriggerKind::Azure),
            (".", TriggerKind::Discord),
            (".atlasv1.", TriggerKind::Terraform),
            ("LS0tLS1CRUdJTi", TriggerKind::EncodedKey),
            ("-us", TriggerKind::Mailchimp),
            (":5432:", TriggerKind::PasswordFile),
            (":*:", TriggerKind::PasswordFile),
        ] {
            add(word, look);
        }
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)
            .ok();
        Self { words, looks }
    }
}

impl Detectors {
    pub(super) fn new(rules: Vec<RedactionRule>, known: LiteralSecrets) -> Self {
        Self { known, rules }
    }

    /// Returns all secrets found in the text, in no particular order.
    pub(super) fn find(&self, text: &str) -> Vec<SecretSpan> {
        let mut spans = Vec::new();
        let mut named_to = 0;
        let mut blocked_to = 0;
        for found in BUILT_IN.words.iter().flat_map(|words| words.find_overlapping_iter(text)) {
            let at = found.start();
            match BUILT_IN.looks[found.pattern().as_usize()] {
                TriggerKind::Shape(index) => {
                    let shape = &SHAPES[index];
                    if let Some(end) = token_patterns::token_end(shape, text, at) {
                        spans.push(SecretSpan::shaped(at, end, shape.kind));
                        if shape.kind == "aws-key-id" {
                            find_secret_after_key_id(text, end, &mut spans);
                        }
                    }
                }
                TriggerKind::WebToken => {
                    if let Some(end) = token_patterns::web_token(text, at) {
                        spans.push(SecretSpan::shaped(at, end, "jwt"));
                    }
                }
                TriggerKind::Begin if at >= blocked_to => {
                    if let Some(range) = block::from_begin(text, at) {
                        blocked_to = range.end;
                        spans.push(SecretSpan::block(range.start, range.end, "private-key"));
                    }
                }
                TriggerKind::End if at >= blocked_to => {
                    if let Some(range) = block::to_end(text, at) {
                        blocked_to = range.end;
                        spans.push(SecretSpan::block(range.start, range.end, "private-key"));
                    }
                }
                TriggerKind::Begin | TriggerKind::End => {}
                TriggerKind::Putty => {
                    if let Some(range) = block::putty(text, at) {
                        spans.push(SecretSpan::block(range.start, range.end, "private-key"));
                    }
                }
                TriggerKind::Name => {
                    if at >= named_to {
                        named_to = assignment::find(text, at, &mut spans);
                    }
                }
                TriggerKind::Scheme => header::scheme(text, at, &mut spans),
                TriggerKind::Address => header::address(text, at, &mut spans),
                TriggerKind::Driver => header::driver(text, at, &mut spans),
                TriggerKind::Flag => header::flag(text, at, &mut spans),
                TriggerKind::Telegram => telegram(text, at, &mut spans),
                TriggerKind::Hook(kind) => hook(text, at, found.end(), kind, &mut spans),
                TriggerKind::Azure => azure(text, at, &mut spans),
                TriggerKind::Discord => discord(text, at, &mut spans),
                TriggerKind::Terraform => terraform(text, at, &mut spans),
                TriggerKind::EncodedKey => find_encoded_key(text, at, &mut spans),
                TriggerKind::Mailchimp => mailchimp(text, at, &mut spans),
                TriggerKind::PasswordFile => password_file(text, at, &mut spans),
            }
        }
        self.known.find(text, &mut spans);
        for rule in &self.rules {
            for found in rule.expression.find_iter(text).filter(|found| !found.is_empty()) {
                spans.push(SecretSpan::ruled(found.start(), found.end(), &rule.kind));
            }
        }
        spans
    }

    /// Returns whether an incomplete line contains a trigger that could make the text after it a secret.
    pub(super) fn announces(&self, line: &str) -> bool {
        !self.rules.is_empty()
            || self.known.has_spaces()
            || BUILT_IN.words.iter().flat_map(|words| words.find_overlapping_iter(line)).any(|found| {
                match BUILT_IN.looks[found.pattern().as_usize()] {
                    TriggerKind::Name
                    | TriggerKind::Begin
                    | TriggerKind::End
                    | TriggerKind::Putty
                    | TriggerKind::Scheme
                    | TriggerKind::Address
                    | TriggerKind::Driver
                    | TriggerKind::PasswordFile
                    | TriggerKind::Hook(_) => true,
                    TriggerKind::Flag => {
                        let at = found.start();
                        at == 0 || line.as_bytes()[at - 1].is_ascii_whitespace()
                    }
                    TriggerKind::Shape(index) => SHAPES[index].start.contains(' '),
                    TriggerKind::WebToken
                    | TriggerKind::Telegram
                    | TriggerKind::Azure
                    | TriggerKind::Discord
                    | TriggerKind::Terraform
                    | TriggerKind::EncodedKey
                    | TriggerKind::Mailchimp => false,
                }
            })
    }
}

fn telegram(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let digits = bytes[..at].iter().rev().take(14).take_while(|byte| byte.is_ascii_digit()).count();
    let length = bytes[at + 1..].iter().take_while(|byte| token_patterns::Letters::Dashed.has(**byte)).count();
    if bytes[at + 1] == b'A' && (8..=12).contains(&digits) && (34..=36).contains(&length) {
        spans.push(SecretSpan::shaped(at - digits, at + 1 + length, "telegram-token"));
    }
}

fn hook(text: &str, at: usize, from: usize, kind: &'static str, spans: &mut Vec<SecretSpan>) {
    let length = text.as_bytes()[from..]
        .iter()
        .take_while(|byte| token_patterns::Letters::Dashed.has(**byte) || matches!(byte, b'/' | b'@'))
        .count();
    let path = &text[from..from + length];
    let secret = path.split('/').max_by_key(|part| part.len()).unwrap_or_default();
    if super::value::is_random(secret, 16) && !super::value::is_placeholder(path.trim_matches('/')) {
        spans.push(SecretSpan::shaped(at, from + length, kind));
    }
}

/// Finds Azure client secrets, which consist of three characters, a digit, `Q~` and further characters.
fn azure(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let Some(start) = at.checked_sub(4) else { return };
    let has = |byte: u8| token_patterns::Letters::Dotted.has(byte) || byte == b'~';
    let length = bytes[at + 2..].iter().take_while(|byte| has(**byte)).count();
    let head = bytes[start..at - 1].iter().all(|byte| has(*byte)) && bytes[at - 1].is_ascii_digit();
    if head && text.is_char_boundary(start) && bytes[at..].starts_with(b"Q~") && (31..=40).contains(&length) {
        spans.push(SecretSpan::shaped(start, at + 2 + length, "azure-secret"));
    }
}

fn mailchimp(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let hex = bytes[..at].iter().rev().take(33).take_while(|byte| token_patterns::Letters::Hex.has(**byte)).count();
    let digits = bytes[at + 3..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if hex == 32 && (1..=2).contains(&digits) {
        spans.push(SecretSpan::shaped(at - 32, at + 3 + digits, "mailchimp-key"));
    }
}

/// Finds the password in a line of a `~/.pgpass` file.
fn password_file(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    let start = text[..at].rfind('\n').map_or(0, |line| line + 1);
    let line = text[start..].split('\n').next().unwrap_or_default().trim_end();
    // Search tools print the file and line before the text.
    let mut parts = line.splitn(3, ':');
    let found = match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(number), Some(rest)) if number.len() < 4 && number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => line,
    };
    let fields: Vec<&str> = found.splitn(5, ':').collect();
    let [host, port, database, user, password] = fields[..] else { return };
    let name = |field: &str| !field.is_empty() && !field.contains(|letter: char| letter.is_whitespace() || letter == '/');
    let port = port == "*" || port.len() >= 4 && port.bytes().all(|byte| byte.is_ascii_digit());
    let whole = port && name(host) && name(database) && name(user) && name(password);
    if whole && super::value::is_password(password) && !super::value::is_placeholder(password) {
        let end = start + line.len();
        spans.push(SecretSpan::named(end - password.len(), end, "password"));
    }
}

/// Finds Discord tokens, which start with `M`, `N` or `O` and have three parts separated by dots. The position `at` is
/// just before the second part, which has six characters.
fn discord(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let has = |byte: &u8| token_patterns::Letters::Dashed.has(*byte);
    if bytes.get(at + 7) != Some(&b'.') || !bytes[at + 1..at + 7].iter().all(has) {
        return;
    }
    let before = bytes[..at].iter().rev().take(40).take_while(|byte| has(byte)).count();
    let after = bytes[at + 8..].iter().take_while(|byte| has(byte)).count();
    if (23..=28).contains(&before) && matches!(bytes[at - before], b'M' | b'N' | b'O') && (27..=45).contains(&after) {
        spans.push(SecretSpan::shaped(at - before, at + 8 + after, "discord-token"));
    }
}

fn terraform(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    const MIDDLE: usize = ".atlasv1.".len();
    let bytes = text.as_bytes();
    let before = bytes[..at].iter().rev().take(20).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let after = bytes[at + MIDDLE..].iter().take_while(|byte| token_patterns::Letters::Dashed.has(**byte)).count();
    if (10..20).contains(&before) && after >= 40 {
        spans.push(SecretSpan::shaped(at - before, at + MIDDLE + after, "terraform-token"));
    }
}

fn find_encoded_key(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    let length = text.as_bytes()[at..].iter().take_while(|byte| token_patterns::Letters::Base64.has(**byte)).count();
    let head = &text[at..at + length.min(64) / 4 * 4];
    let title = base64::Engine::decode(&base64::engine::general_purpose::STANDARD_NO_PAD, head.trim_end_matches('='));
    if title.is_ok_and(|title| String::from_utf8_lossy(&title).contains("PRIVATE KEY")) {
        spans.push(SecretSpan::shaped(at, at + length, "private-key"));
    }
}

/// Finds the 40-character secret directly after its key ID, as in `AKIA…,…`.
fn find_secret_after_key_id(text: &str, end: usize, spans: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let gap = bytes[end..].iter().take(4).take_while(|byte| matches!(byte, b',' | b':' | b' ' | b'\t' | b'"' | b'|')).count();
    let has = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let length = bytes[end + gap..].iter().take(41).take_while(|byte| has(byte)).count();
    let start = end + gap;
    if gap > 0 && length == 40 && super::value::is_random(&text[start..start + length], 40) {
        spans.push(SecretSpan::named(start, start + length, "aws-secret"));
    }
}

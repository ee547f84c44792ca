//! Finds credentials in HTTP requests: headers, Base64-encoded logins, and URLs that contain a password.

use super::SecretSpan;
use super::token_patterns::Letters;
use super::value::{is_password, is_placeholder, is_random};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Words that precede credentials.
const SCHEMES: &[&str] =
    &["bearer", "basic", "token", "apikey", "api-key", "bot", "digest", "negotiate", "ntlm", "key", "jwt", "oauth", "ssws"];

/// Returns whether a value is Base64-encoded `user:password`.
pub(super) fn is_login(value: &str) -> bool {
    let plain = value.trim_end_matches('=');
    let bytes = STANDARD_NO_PAD.decode(plain).or_else(|_| URL_SAFE_NO_PAD.decode(plain)).unwrap_or_default();
    let Ok(text) = std::str::from_utf8(&bytes) else { return false };
    let Some((_, password)) = text.split_once(':') else { return false };
    value.len() >= 8 && !password.is_empty() && !text.contains(char::is_control)
}

/// Finds the credentials in the value of an `Authorization` header.
pub(super) fn credentials(text: &str, start: usize, end: usize, spans: &mut Vec<SecretSpan>) {
    let value = &text[start..end];
    let (scheme, rest) = match value.split_once(' ') {
        Some((word, rest)) if SCHEMES.contains(&word.to_ascii_lowercase().as_str()) => {
            (word.to_ascii_lowercase(), rest.trim_start())
        }
        Some(_) | None => (String::new(), value),
    };
    let from = start + (value.len() - rest.len());
    if scheme == "digest" {
        const ANSWER: &str = "response=\"";
        let Some(answer) = rest.find(ANSWER) else { return };
        let letters = rest[answer + ANSWER.len()..].bytes().take_while(u8::is_ascii_hexdigit).count();
        if letters >= 16 {
            spans.push(SecretSpan::named(from + answer + ANSWER.len(), from + answer + ANSWER.len() + letters, "token"));
        }
        return;
    }
    let length = rest.bytes().take_while(|byte| Letters::Base64.has(*byte) || matches!(byte, b'~' | b':' | b'!' | b'$')).count();
    let word = &rest[..length];
    let holds = match scheme.as_str() {
        "" => is_random(word, 12),
        "basic" => is_login(word) || is_random(word, 8),
        _ => is_random(word, 8),
    };
    if holds && !is_placeholder(word) {
        spans.push(SecretSpan::named(from, from + length, if scheme == "basic" { "login" } else { "token" }));
    }
}

/// Finds the credentials that follow the authentication scheme at `at`, as in `Bearer …` or `Basic …`. The scheme need
/// not be in a header.
pub(super) fn scheme(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    let before = at.checked_sub(1).map(|before| text.as_bytes()[before]);
    let word = text[at..].bytes().take_while(u8::is_ascii_alphabetic).count();
    let rest = &text[at + word..];
    let space = ["%20", " ", "+"].iter().find(|space| rest.starts_with(**space)).map_or(0, |space| space.len());
    if space == 0 || before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return;
    }
    let start = at + word + space;
    let length = text[start..].bytes().take_while(|byte| Letters::Base64.has(*byte) || *byte == b'~').count();
    let value = &text[start..start + length];
    let basic = text[at..at + word].eq_ignore_ascii_case("basic");
    let holds = if basic { is_login(value) } else { is_random(value, 16) };
    if holds && !is_placeholder(value) {
        spans.push(SecretSpan::named(start, start + length, if basic { "login" } else { "token" }));
    }
}

/// Words that occur in names of session cookies.
const SESSIONS: &[&str] = &["sess", "sid", "auth", "token", "jwt", "login", "csrf", "xsrf", "remember", "user", "key", "secret"];
const ATTRIBUTES: &[&str] = &["path", "domain", "expires", "max-age", "samesite", "version", "comment", "priority"];

pub(super) fn cookies(text: &str, start: usize, end: usize, spans: &mut Vec<SecretSpan>) {
    let mut at = start;
    for piece in text[start..end].split(';') {
        let from = at;
        at += piece.len() + 1;
        let Some((name, value)) = piece.split_once('=') else { continue };
        let value_start = from + name.len() + 1;
        let name = name.trim().to_ascii_lowercase();
        let value = value.trim_end().trim_end_matches(['"', '\'']);
        let least = if SESSIONS.iter().any(|word| name.contains(word)) { 8 } else { 16 };
        if !ATTRIBUTES.contains(&name.as_str()) && !is_placeholder(value) && is_random(value, least) {
            spans.push(SecretSpan::named(value_start, value_start + value.len(), "cookie"));
        }
    }
}

/// Finds the password in `scheme://user:password@host`. `at` is the position of `://`.
pub(super) fn address(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    /// Maximum length of an authority in bytes.
    const AUTHORITY_BYTES: usize = 1024;
    let start = at + 3;
    let bytes = text.as_bytes();
    let scheme = bytes[..at]
        .iter()
        .rev()
        .take(20)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        .count();
    if scheme == 0 {
        return;
    }
    let web = text[at - scheme..at].to_ascii_lowercase().ends_with("http")
        || text[at - scheme..at].to_ascii_lowercase().ends_with("https");
    let stop = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`');
    let most = bytes[start..]
        .iter()
        .take(AUTHORITY_BYTES)
        .position(stop)
        .unwrap_or_else(|| bytes.len().min(start + AUTHORITY_BYTES) - start);
    let whole = &bytes[start..start + most];
    let authority = whole.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(most);
    let sign = whole[..authority].iter().rposition(|byte| *byte == b'@').or_else(|| {
        // A password may contain a slash if the text before the slash cannot be a host.
        let rest = whole.iter().rposition(|byte| *byte == b'@')?;
        let port = whole[..authority].iter().position(|byte| *byte == b':').map(|colon| &whole[colon + 1..authority]);
        (!web && port.is_some_and(|port| !port.iter().all(u8::is_ascii_digit))).then_some(rest)
    });
    let Some(sign) = sign else { return };
    let (from, to, named) = match whole[..sign].iter().position(|byte| *byte == b':') {
        Some(colon) => (start + colon + 1, start + sign, true),
        None => (start, start + sign, false),
    };
    if !text.is_char_boundary(from) || !text.is_char_boundary(to) {
        return;
    }
    let secret = &text[from..to];
    let user = if named { &text[start..from - 1] } else { "" };
    if secret.is_empty() || is_placeholder_password(secret) {
        // `https://token:x-oauth-basic@host`
        if is_random(user, 20) && !is_placeholder(user) {
            spans.push(SecretSpan::named(start, start + user.len(), "token"));
        }
        return;
    }
    if named {
        spans.push(SecretSpan::named(from, to, "password"));
        if is_random(user, 24) && matches!(secret, "x" | "X" | "x-oauth-basic") {
            spans.push(SecretSpan::named(start, from - 1, "token"));
        }
    } else if is_random(secret, 20) && !is_placeholder(secret) {
        spans.push(SecretSpan::named(from, to, "token"));
    }
}

/// Returns whether a password in a URL is merely a placeholder, as in examples. Any other value is treated as a
/// password.
fn is_placeholder_password(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let words = ["password", "pass", "passwd", "pwd", "secret", "pw", "token", "x", "x-oauth-basic", "user", "username"];
    words.contains(&lower.as_str())
        || is_placeholder(text)
        || text.contains("${")
        || text.contains("{{")
        || (text.starts_with('{') && text.ends_with('}'))
        || (text.starts_with(':'))
}

/// Finds the password in `-u user:password`, `sshpass -p password` or `mysql -ppassword`.
pub(super) fn flag(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let line_start = text[..at].rfind('\n').map_or(0, |line| line + 1);
    let line = text[line_start..at].to_ascii_lowercase();
    let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
    if !matches!(before, b' ' | b'\t' | b'"' | b'\'' | b'\n' | b',' | b'[') {
        return;
    }
    let rest = &text[at..];
    let runs = |names: &[&str]| names.iter().any(|name| line.contains(name));
    let word_at = |skip: usize| {
        let gap = rest[skip..].bytes().take_while(|byte| matches!(byte, b' ' | b'=' | b'"' | b'\'' | b',')).count();
        let start = at + skip + gap;
        let quote = bytes[start - 1];
        let length = if matches!(quote, b'"' | b'\'') {
            text[start..].bytes().position(|byte| byte == quote || byte == b'\n')
        } else {
            text[start..].bytes().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b';' | b'|'))
        };
        (start, start + length.unwrap_or(text.len() - start))
    };
    let mut hide = |start: usize, end: usize| {
        if text.is_char_boundary(start) && text.is_char_boundary(end) && start < end && !is_placeholder(&text[start..end]) {
            spans.push(SecretSpan::named(start, end, "password"));
        }
    };
    let login = ["--user", "--proxy-user", "--auth", "-u", "-U", "-a"].iter().find(|flag| {
        // Only for HTTPie is the value of `-a` a login.
        if **flag == "-a" && !line.split([' ', '\t', ':', '-']).any(|word| matches!(word, "http" | "https" | "xh" | "xhs")) {
            return false;
        }
        let next = rest.as_bytes().get(flag.len());
        rest.starts_with(**flag) && matches!(next, Some(b' ' | b'=' | b'"' | b'\'' | b',') | None)
    });
    if let Some(flag) = login {
        let (start, end) = word_at(flag.len());
        let Some((user, password)) = text[start..end].split_once([':', '%']) else { return };
        let from = start + user.len() + 1;
        if runs(&["curl", "wget", "http", "smbclient", "rpcclient"]) && !password.bytes().all(|byte| byte.is_ascii_digit())
            || is_random(password, 8)
        {
            hide(from, end);
        }
    } else if rest.starts_with("-b ") && runs(&["curl"]) {
        let (start, end) = word_at(2);
        if text.is_char_boundary(start) && text.is_char_boundary(end) && start < end {
            cookies(text, start, end, spans);
        }
    } else if rest.starts_with("-P ") && runs(&["sqlcmd", "bcp ", "isql", "mosquitto_"]) {
        let (start, end) = word_at(2);
        if is_password(&text[start..end]) {
            hide(start, end);
        }
    } else if rest.starts_with("-p") || rest.starts_with("-a ") || rest.starts_with("-w ") {
        let apart = matches!(rest.as_bytes().get(2), Some(b' ' | b'"' | b'\'' | b'='));
        let takes = runs(programs_with(&rest[..2], apart));
        let (start, end) = word_at(2);
        if takes && is_password(&text[start..end]) {
            hide(start, end);
        }
    }
}

/// Returns the programs that accept a password with this flag. `apart` specifies whether the password is a separate
/// word.
fn programs_with(flag: &str, apart: bool) -> &'static [&'static str] {
    match flag {
        "-p" if apart => {
            &["sshpass", "docker login", "podman login", "helm registry login", "az login", "mongosh", "mongodump", "mongo "]
        }
        "-p" => &["mysql", "mariadb", "sshpass"],
        "-a" => &["redis-cli"],
        _ => &["ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami"],
    }
}

/// Finds the password in `user:password@tcp(host)`. `at` is the position of `@`.
pub(super) fn driver(text: &str, at: usize, spans: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let start = at
        - bytes[..at]
            .iter()
            .rev()
            .take(256)
            .take_while(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`' | b'=' | b'/'))
            .count();
    if !text.is_char_boundary(start) {
        return;
    }
    let Some((user, password)) = text[start..at].split_once(':') else { return };
    if !password.is_empty() && !is_placeholder_password(password) {
        spans.push(SecretSpan::named(start + user.len() + 1, at, "password"));
    }
}

//! Names that indicate a secret value, and the kind of value that each one indicates.

/// Kind of value that a name indicates, which determines how strictly the value is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Password,
    Secret,
    Token,
    /// `…_KEY`. Most values with such a name are not secret.
    Key,
    /// Request header in which an authentication scheme precedes the credentials.
    Authorization,
    /// Base64-encoded login.
    Login,
    Cookie,
}

/// Words that may follow the significant word of a name without changing its meaning.
const NEUTRAL: &[&str] = &[
    "base",
    "prod",
    "production",
    "dev",
    "development",
    "staging",
    "test",
    "live",
    "value",
    "primary",
    "secondary",
    "current",
    "previous",
    "old",
    "new",
    "default",
    "raw",
    "b64",
    "base64",
    "plain",
    "plaintext",
    "string",
    "override",
];
const PASSWORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pass",
    "pw",
    "psk",
    "passwort",
    "pwd",
    "kennwort",
    "requirepass",
    "masterauth",
    "dbpass",
    "userpass",
    "rootpass",
    "rootpw",
    "bindpw",
    "adminpw",
    "keypass",
    "storepass",
];
const TOKENS: &[&str] = &["token", "apikey", "credential", "credentials", "jwt", "bearer", "pat", "sas", "authtoken"];
/// Words that indicate a secret when they precede `key`.
const KEYS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "encryption",
    "signing",
    "master",
    "account",
    "client",
    "service",
    "deploy",
    "session",
    "shared",
    "storage",
    "subscription",
    "webhook",
    "app",
    "application",
    "hmac",
    "aes",
    "admin",
    "root",
    "crypt",
    "cipher",
    "jwt",
    "token",
    "license",
    "preshared",
    "openai",
    "anthropic",
    "gemini",
    "mistral",
    "cohere",
    "stripe",
    "sendgrid",
    "twilio",
    "mailgun",
    "azure",
];
/// Words in names of values that are public or mark a position in a list.
const HARMLESS: &[&str] = &["public", "publishable", "pub", "page", "next", "continuation", "cursor", "sync", "cancellation"];

/// Returns the kind of secret that a name such as `dbPassword`, `X-Api-Key` or `AWS_SECRET_ACCESS_KEY` indicates, if
/// any.
pub(super) fn promise(name: &str) -> Option<ValueKind> {
    let words = split_words(name);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.iter().any(|word| HARMLESS.contains(word)) {
        return None;
    }
    while words.len() > 1
        && words.last().is_some_and(|last| NEUTRAL.contains(last) || last.bytes().all(|byte| byte.is_ascii_digit()))
    {
        words.pop();
    }
    // `client-key-data`
    if let [.., "key", "data"] = words[..] {
        words.pop();
    }
    let (last, before) = words.split_last()?;
    let before = before.last().copied().unwrap_or_default();
    match *last {
        "pwd" if matches!(name, "PWD" | "OLDPWD" | "pwd") => None,
        "authorization" => Some(ValueKind::Authorization),
        "cookie" => Some(ValueKind::Cookie),
        "auth" => Some(ValueKind::Login),
        "sig" | "signature" if before.is_empty() || before == "amz" => Some(ValueKind::Key),
        word if PASSWORDS.contains(&word) => Some(ValueKind::Password),
        word if ["password", "passwd", "passphrase"].iter().any(|end| word.ends_with(end)) => Some(ValueKind::Password),
        word if word.ends_with("secret") || word == "secrets" => Some(ValueKind::Secret),
        word if TOKENS.contains(&word) => Some(ValueKind::Token),
        word if ["token", "apikey", "secretkey", "accesskey", "privatekey", "authkey", "apisecret"]
            .iter()
            .any(|end| word.ends_with(end)) =>
        {
            Some(ValueKind::Token)
        }
        "key" if KEYS.contains(&before) => Some(ValueKind::Token),
        "key" if name.bytes().all(|byte| !byte.is_ascii_lowercase()) => Some(ValueKind::Key),
        _ => None,
    }
}

/// Splits a name into lower-case words, at separators and where a lower-case letter is followed by an upper-case one.
fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = at.checked_sub(1).map_or(' ', |at| letters[at]);
        let after = letters.get(at + 1).copied().unwrap_or(' ');
        let begins = letter.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || (before.is_ascii_uppercase() && after.is_ascii_lowercase()));
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether a variable with this name is withheld from commands and has its value redacted.
pub fn is_secret(name: &str) -> bool {
    promise(name).is_some()
}

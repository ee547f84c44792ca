//! Determines which host names can be public and which are deceptive.

/// Maximum length of a DNS name in bytes (RFC 1035).
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

/// Suffixes of names that are local to a machine, a home or a company, each with the reason.
const LOCAL_ENDS: &[(&str, &str)] = &[
    ("localhost", "is this machine (RFC 6761)"),
    ("localdomain", "is this machine"),
    ("localdomain6", "is this machine"),
    ("local", "is on the local network (RFC 6762)"),
    ("home.arpa", "is on a home network (RFC 8375)"),
    ("internal", "is on a private network"),
    ("intranet", "is on a private network"),
    ("private", "is on a private network"),
    ("corp", "is on a private network"),
    ("home", "is on a private network"),
    ("lan", "is on a private network"),
    ("svc", "is inside a cluster"),
    ("onion", "is not an Internet name (RFC 7686)"),
    // Public names that, inside a cloud, resolve to its metadata service.
    ("metadata.goog", "serves cloud credentials"),
    ("metadata.tencentyun.com", "serves cloud credentials"),
    ("metadata.platformequinix.com", "serves cloud credentials"),
    ("metadata.packet.net", "serves cloud credentials"),
];

/// Checks that `name`, which is in lower-case ASCII, is a valid host name.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES {
        return Err(format!("the host name has {} characters; the limit is {NAME_BYTES}", name.len()));
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(format!("the host `{name}` contains an empty label; remove the extra dot"));
        }
        if label.len() > LABEL_BYTES {
            return Err(format!("a label of the host name has {} characters; the limit is {LABEL_BYTES}", label.len()));
        }
        let odd = |letter: char| !letter.is_ascii_lowercase() && !letter.is_ascii_digit() && letter != '-' && letter != '_';
        if let Some(letter) = label.chars().find(|letter| odd(*letter)) {
            return Err(format!("the host `{name}` contains `{letter}`, which host names do not allow"));
        }
        if label.starts_with('-') {
            return Err(format!("a label of the host `{name}` starts with `-`, which host names do not allow"));
        }
    }
    Ok(())
}

/// Returns why a name is not public, as far as this can be determined without DNS.
pub(crate) fn local(name: &str) -> Option<String> {
    let ends = |end: &&(&str, &str)| name.strip_suffix(end.0).is_some_and(|front| front.is_empty() || front.ends_with('.'));
    if let Some((_, why)) = LOCAL_ENDS.iter().find(ends) {
        return Some((*why).to_owned());
    }
    (!name.contains('.')).then(|| "has no dot, so it is on the local network".to_owned())
}

/// Checks that the name as written is the name that is looked up, and rejects names with characters that would be
/// converted. Returns a warning if the name is deceptive.
pub(crate) fn check_spelling(raw: &str, name: &str) -> Result<Option<String>, String> {
    let (shown, valid) = idna::domain_to_unicode(name);
    if raw.is_ascii() {
        let mixed = valid.is_ok() && shown.split('.').any(mixes_scripts);
        return Ok(mixed.then(|| format!("`{name}` reads as `{shown}`, which mixes characters of two scripts")));
    }
    if valid.is_err() || shown.is_ascii() || raw.to_lowercase() != shown {
        return Err(format!("the host contains characters that are converted to others; if you mean `{name}`, write that name"));
    }
    if shown.split('.').any(mixes_scripts) {
        return Err(format!("the host mixes characters of two scripts that look alike; if you mean `{name}`, write that name"));
    }
    Ok(Some(format!("the host `{raw}` is converted to `{name}`; characters of different scripts can look alike")))
}

/// Returns whether a label mixes Latin letters with similar-looking letters of another script.
fn mixes_scripts(label: &str) -> bool {
    let latin = |letter: char| letter.is_ascii_alphabetic() || matches!(u32::from(letter), 0x00C0..=0x024F);
    let alike = |letter: char| matches!(u32::from(letter), 0x0370..=0x03FF | 0x0400..=0x058F | 0x13A0..=0x13FF | 0x1F00..=0x1FFF);
    label.chars().any(latin) && label.chars().any(alike)
}

//! Names of hosts: which can be public, and which are not what they look like.

/// Longest name and longest label that DNS carries (RFC 1035).
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

/// Ends of names that belong to a machine, a home or a company, and why.
const LOCAL_ENDS: &[(&str, &str)] = &[
    ("localhost", "is this machine (RFC 6761)"),
    ("localdomain", "is this machine"),
    ("localdomain6", "is this machine"),
    ("local", "is of the local network (RFC 6762)"),
    ("home.arpa", "is of a home network (RFC 8375)"),
    ("internal", "is of a private network"),
    ("intranet", "is of a private network"),
    ("private", "is of a private network"),
    ("corp", "is of a private network"),
    ("home", "is of a private network"),
    ("lan", "is of a private network"),
    ("svc", "is of a cluster"),
    ("onion", "is not a name of the Internet (RFC 7686)"),
    // Names under public domains that lead to a cloud's metadata from inside it.
    ("metadata.goog", "serves a cloud's credentials"),
    ("metadata.tencentyun.com", "serves a cloud's credentials"),
    ("metadata.platformequinix.com", "serves a cloud's credentials"),
    ("metadata.packet.net", "serves a cloud's credentials"),
];

/// Whether a name, in lower case and ASCII, can be a name at all.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES {
        return Err(format!("the host's name has {} letters, at most {NAME_BYTES} can be looked up", name.len()));
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(format!("the host `{name}` has a dot too many"));
        }
        if label.len() > LABEL_BYTES {
            return Err(format!("a part of the host's name has {} letters, at most {LABEL_BYTES} can be looked up", label.len()));
        }
        let odd = |letter: char| !letter.is_ascii_lowercase() && !letter.is_ascii_digit() && letter != '-' && letter != '_';
        if let Some(letter) = label.chars().find(|letter| odd(*letter)) {
            return Err(format!("the host `{name}` has `{letter}` in it, which no name has"));
        }
        if label.starts_with('-') {
            return Err(format!("a part of the host `{name}` starts with `-`, which no name does"));
        }
    }
    Ok(())
}

/// Why a name is not public, whatever a resolver says.
pub fn local(name: &str) -> Option<String> {
    let ends = |end: &&(&str, &str)| name.strip_suffix(end.0).is_some_and(|front| front.is_empty() || front.ends_with('.'));
    if let Some((_, why)) = LOCAL_ENDS.iter().find(ends) {
        return Some((*why).to_owned());
    }
    (!name.contains('.')).then(|| "has no dot, so it is of the local network".to_owned())
}

/// Whether the name as written is the name that is looked up; letters that only stand for others are refused.
pub fn spelled(raw: &str, name: &str) -> Result<Option<String>, String> {
    let (shown, valid) = idna::domain_to_unicode(name);
    if raw.is_ascii() {
        let mixed = valid.is_ok() && shown.split('.').any(mixes_scripts);
        return Ok(mixed.then(|| format!("`{name}` reads as `{shown}`, which mixes letters of two scripts")));
    }
    if valid.is_err() || shown.is_ascii() || raw.to_lowercase() != shown {
        return Err(format!("the host has letters that stand for others; if you mean `{name}`, write that"));
    }
    if shown.split('.').any(mixes_scripts) {
        return Err(format!("the host mixes letters of two scripts that look alike; if you mean `{name}`, write that"));
    }
    Ok(Some(format!("the host `{raw}` is `{name}`, and letters of other scripts can look alike")))
}

/// Latin together with a script whose letters pass for it.
fn mixes_scripts(label: &str) -> bool {
    let latin = |letter: char| letter.is_ascii_alphabetic() || matches!(u32::from(letter), 0x00C0..=0x024F);
    let alike = |letter: char| matches!(u32::from(letter), 0x0370..=0x03FF | 0x0400..=0x058F | 0x13A0..=0x13FF | 0x1F00..=0x1FFF);
    label.chars().any(latin) && label.chars().any(alike)
}

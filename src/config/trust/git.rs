//! Location of a workspace's git directory, determined by reading small files instead of running git.

use super::contents::read_small;
use std::path::Path;

/// Maximum size in bytes of a git pointer file, which consists of a single line.
const POINTER_BYTES: u64 = 4096;

/// Returns the git directory of a workspace. Returns an empty string if it is inside the workspace or does not exist.
///
/// A `.git` file names a directory, whose `commondir` file can name another one. Either could refer to a directory that
/// the user trusts, so the trust record includes both.
pub(crate) fn repository(real: &Path) -> String {
    let git = real.join(".git");
    let pointer = match git.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => line(&git),
        Ok(metadata) if metadata.is_symlink() => std::fs::read_link(&git).ok().map(|to| format!("link: {}", to.display())),
        Ok(_) => return line(&git.join("commondir")).map(|common| format!("commondir: {common}")).unwrap_or_default(),
        Err(_) => return String::new(),
    };
    let Some(pointer) = pointer else { return "unreadable".to_owned() };
    let place = pointer.strip_prefix("gitdir:").map(|place| real.join(place.trim()));
    let common = place.and_then(|place| line(&place.join("commondir")));
    common.map_or_else(|| pointer.clone(), |common| format!("{pointer}, commondir: {common}"))
}

fn line(path: &Path) -> Option<String> {
    let bytes = read_small(&path.canonicalize().ok()?, POINTER_BYTES).ok()??;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// Maximum size of a git configuration file in bytes.
const CONFIG_BYTES: u64 = 256 << 10;

/// Returns the URL of `origin` or otherwise of the first remote, with the user name and password removed.
pub(crate) fn remote(real: &Path) -> Option<String> {
    let bytes = read_small(&real.join(".git/config").canonicalize().ok()?, CONFIG_BYTES).ok()??;
    address(&String::from_utf8_lossy(&bytes))
}

fn address(config: &str) -> Option<String> {
    let mut section = "";
    let mut first = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("url")
            && section.starts_with("[remote ")
        {
            let value = without_login(value.trim().trim_matches('"'));
            if section == "[remote \"origin\"]" {
                return Some(value);
            }
            first = first.or(Some(value));
        }
    }
    first
}

fn without_login(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let host = rest.find('/').unwrap_or(rest.len());
    match rest[..host].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn the_remote_is_parsed_from_the_git_config_without_its_credentials() {
        let config = "[core]\n\tbare = false\n[remote \"up\"]\n\turl = git@a.example:x/y.git\n";
        assert_eq!(address(config).as_deref(), Some("git@a.example:x/y.git"));
        let both = format!("{config}[remote \"origin\"]\n\turl = https://me:secret@b.example/x@y.git\n");
        assert_eq!(address(&both).as_deref(), Some("https://b.example/x@y.git"));
        assert_eq!(address("[branch \"main\"]\n\turl = x\n"), None);
    }
}

//! File names that by convention indicate secrets in any directory.

/// File name suffixes, in lower case.
const ENDS: &[&str] =
    &[".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".tfstate", ".tfstate.backup", ".tfvars"];
/// Complete file names, in lower case.
const NAMES: &[&str] = &[
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".pypirc",
    ".htpasswd",
    ".pgpass",
    ".my.cnf",
    ".dockercfg",
    ".vault_pass",
    ".vault-token",
    "credentials.json",
    "service-account.json",
    "service_account.json",
];
/// Suffixes of example files, which are intended to be shared.
const EXAMPLES: &[&str] = &["example", "sample", "template", "dist", "defaults"];

/// Returns whether files with this name conventionally contain secrets, as for `.env`, `server.key`, `id_ed25519` and
/// `prod.tfstate`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    if let Some(rest) = name.strip_prefix(".env") {
        return !EXAMPLES.iter().any(|end| rest.ends_with(end));
    }
    let is_key = name.strip_prefix("id_").is_some_and(|rest| !rest.is_empty() && !rest.contains('.'));
    is_key || NAMES.contains(&name.as_str()) || ENDS.iter().any(|end| name.ends_with(end) && name.len() > end.len())
}

#[cfg(test)]
mod tests {
    use super::is_secret_name;

    #[test]
    fn secret_files_are_detected_by_name() {
        for name in [".env", ".env.local", ".ENV", ".envrc", "id_rsa", "id_ed25519", "a.pem", "Server.KEY", "x.tfstate", ".netrc"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["env", ".env.example", "id_map.rs", "id_rsa.pub", "key", ".key", "monkey.rs", "keys.toml", "a.pem.md", "id_"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}

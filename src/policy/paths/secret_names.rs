//! File names that by convention indicate secrets in any directory.

/// File name suffixes, in lower case.
const ENDS: &[&str] = &[
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    ".tfstate",
    ".tfstate.backup",
    ".tfvars",
    ".tfvars.json",
    ".kubeconfig",
];
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
/// Beginnings of names that an extension or several follow, as in `secrets.prod.yaml`, in lower case.
const STARTS: &[&str] = &["secrets.", "credentials.yml", "credentials.yaml", "credentials.toml", "master.key."];
/// Extensions of source code, documentation and public keys, which contain no secrets of their own.
const PUBLIC_EXTENSIONS: &[&str] = &[
    "adoc", "bash", "c", "cc", "cjs", "clj", "cljs", "cpp", "cs", "css", "d", "dart", "el", "erl", "ex", "exs", "fish", "fs",
    "go", "graphql", "groovy", "h", "hpp", "hs", "html", "java", "jl", "js", "jsonl", "jsx", "kt", "kts", "lua", "m", "md",
    "mjs", "ml", "mli", "mm", "nim", "nix", "php", "pl", "pm", "proto", "ps1", "pub", "py", "pyi", "r", "rb", "rs", "rst",
    "scala", "scss", "sh", "sql", "svelte", "swift", "tf", "ts", "tsx", "vim", "vue", "zig", "zsh",
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
    is_key
        || NAMES.contains(&name.as_str())
        || ENDS.iter().any(|end| name.ends_with(end) && name.len() > end.len())
        || STARTS.iter().any(|start| name.starts_with(start)) && is_private(&name)
}

/// Returns whether no part of a name marks the file as an example, as source code or as documentation.
fn is_private(name: &str) -> bool {
    let mut parts = name.split('.').skip(1).filter(|part| !part.is_empty()).peekable();
    let is_example = |part: &&str| EXAMPLES.contains(part);
    parts.peek().is_some()
        && !name.rsplit('.').next().is_some_and(|last| PUBLIC_EXTENSIONS.contains(&last))
        && !parts.any(|part| is_example(&part))
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
        for name in [
            "secrets.yaml",
            "Secrets.prod.YML",
            "secrets.json",
            "credentials.yml.enc",
            "credentials.yaml",
            "master.key.bak",
            "prod.kubeconfig",
            "terraform.tfvars.json",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            ".env.sample",
            ".env.template",
            "server.key.pub",
            "master.key.pub",
            "secrets",
            "secrets.rs",
            "secrets.test.ts",
            "secrets.md",
            "secrets.example.yaml",
            "secrets.yaml.sample",
            "credentials.rs",
            "my_secrets.yaml",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
        for name in ["env", ".env.example", "id_map.rs", "id_rsa.pub", "key", ".key", "monkey.rs", "keys.toml", "a.pem.md", "id_"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}

//! Environment variables that are passed to a command.

use std::ffi::{OsStr, OsString};

/// Which variables from aye's own environment are passed to commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum EnvironmentSelection {
    /// All variables except secrets and those that change the meaning of a shell line.
    Inherit,
    /// Variables for paths, language and tools, which most programs need.
    #[default]
    Core,
    /// Only the variables with these names.
    Listed(Vec<String>),
    /// Only the variables with these names that `Inherit` would pass.
    InheritOf(Vec<String>),
    /// Only the variables with these names that `Core` would pass.
    CoreOf(Vec<String>),
}

/// Names of the variables that `Core` passes. A name that ends in `_` is a prefix.
const CORE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "COLORTERM",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "LANG",
    "LANGUAGE",
    "LC_",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "ANDROID_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PKG_CONFIG_PATH",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
];

/// Variables that change the meaning of a shell line, or load code into every program.
const CHANGES_MEANING: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_XTRACEFD",
    "PS4",
    "PROMPT_COMMAND",
    "CDPATH",
    "GLOBIGNORE",
    "IFS",
    "POSIXLY_CORRECT",
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "HOSTALIASES",
];

/// Variables that make programs run or load unexpected code, and that are therefore passed only if listed explicitly. A
/// name that ends in `_` is a prefix.
const LOADS_CODE: &[&str] = &[
    "GIT_",
    "DYLD_",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "NODE_OPTIONS",
    "VIMINIT",
    "EXINIT",
    "LUA_INIT",
    "PERL5OPT",
    "PERL5DB",
    "PERL5LIB",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "LESSOPEN",
    "LESSCLOSE",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
];

/// Prefixes of environment variables that configure provider accounts.
const ACCOUNTS: &[&str] = &["ANTHROPIC_", "AWS_", "AZURE_", "OPENAI_"];

/// Words in a variable's name which indicate that its value is a secret.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "PWD_FILE",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
    "COOKIE",
    "PAT",
    "DSN",
    "PRIVATE",
];

/// Returns a command's environment, derived from aye's own. Variables in `secret_names` (provider keys) are passed only
/// if listed. `is_secret` returns whether a value is a secret.
pub(crate) fn command_environment(
    own: impl Iterator<Item = (OsString, OsString)>,
    choice: &EnvironmentSelection,
    secret_names: &[String],
    is_secret: &dyn Fn(&str) -> bool,
) -> Vec<(OsString, OsString)> {
    let mut kept: Vec<_> = own.filter(|(name, value)| may_see(name, value, choice, secret_names, is_secret)).collect();
    kept.push(("AYE".into(), "1".into()));
    kept
}

/// Returns the environment for a program that the user configured to print an API key: aye's own environment, without
/// aye's API keys and variables that load code. Other secrets are passed, because the program may need them.
pub(crate) fn program_environment(
    own: impl Iterator<Item = (OsString, OsString)>,
    withheld: &[String],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &str| {
        !name.starts_with("AYE")
            && !name.starts_with("BASH_FUNC_")
            && !CHANGES_MEANING.contains(&name)
            && !matches_table(LOADS_CODE, name)
            && !withheld.iter().any(|withheld| withheld == name)
    };
    let mut kept: Vec<_> = own.filter(|(name, _)| name.to_str().is_some_and(passes)).collect();
    kept.push(("AYE".into(), "1".into()));
    kept
}

/// Returns a summary for the approval prompt, such as `core, 14 secrets withheld`.
pub(crate) fn describe_environment(
    own: impl Iterator<Item = (OsString, OsString)>,
    choice: &EnvironmentSelection,
    secret_names: &[String],
    is_secret: &dyn Fn(&str) -> bool,
) -> String {
    let held_back = own
        .filter(|(name, value)| {
            is_kept_secret(&name.to_string_lossy(), value, secret_names, is_secret)
                && !may_see(name, value, choice, secret_names, is_secret)
        })
        .count();
    let name = match choice {
        EnvironmentSelection::Inherit => "inherit".to_owned(),
        EnvironmentSelection::Core => "core".to_owned(),
        EnvironmentSelection::Listed(names) | EnvironmentSelection::InheritOf(names) | EnvironmentSelection::CoreOf(names) => {
            format!("listed variables only ({})", names.len())
        }
    };
    match held_back {
        0 => name,
        1 => format!("{name}, 1 secret withheld"),
        count => format!("{name}, {count} secrets withheld"),
    }
}

fn is_kept_secret(name: &str, value: &OsStr, secret_names: &[String], is_secret: &dyn Fn(&str) -> bool) -> bool {
    secret_names.iter().any(|secret| secret == name)
        || ACCOUNTS.iter().any(|start| name.starts_with(start))
        || holds_secret(name, value)
        || value.to_str().is_some_and(is_secret)
}

fn may_see(
    name: &OsStr,
    value: &OsStr,
    choice: &EnvironmentSelection,
    secret_names: &[String],
    is_secret: &dyn Fn(&str) -> bool,
) -> bool {
    // A name that is not UTF-8 cannot be judged.
    let Some(name) = name.to_str() else { return false };
    if name.starts_with("AYE") || name.starts_with("BASH_FUNC_") || CHANGES_MEANING.contains(&name) {
        return false;
    }
    let listed = |names: &[String]| names.iter().any(|listed| listed == name);
    let wanted = match choice {
        // A name that was listed explicitly is intended.
        EnvironmentSelection::Listed(names) => return listed(names),
        EnvironmentSelection::InheritOf(names) => listed(names),
        EnvironmentSelection::CoreOf(names) => listed(names) && is_core(name),
        EnvironmentSelection::Inherit => true,
        EnvironmentSelection::Core => is_core(name),
    };
    wanted && !matches_table(LOADS_CODE, name) && !is_kept_secret(name, value, secret_names, is_secret)
}

fn is_core(name: &str) -> bool {
    matches_table(CORE, name)
}

/// Returns whether a table contains the name itself, or a prefix of it that ends in `_`.
fn matches_table(table: &[&str], name: &str) -> bool {
    table.iter().any(|entry| if entry.ends_with('_') { name.starts_with(entry) } else { *entry == name })
}

fn holds_secret(name: &str, value: &OsStr) -> bool {
    let named = name.split('_').any(|word| {
        let word = word.to_ascii_uppercase();
        SECRET_WORDS.contains(&word.as_str()) || ["TOKEN", "SECRET", "PASSWORD", "APIKEY"].iter().any(|end| word.ends_with(end))
    });
    // `http://user:password@host`
    named || value.to_str().is_some_and(|text| text.split_once("://").is_some_and(|(_, rest)| rest.contains('@')))
}

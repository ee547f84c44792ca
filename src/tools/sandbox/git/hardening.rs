//! Git environment that prevents git from starting programs configured by a repository.

use super::programs::{LinePurpose, Override, always, replacement};
use super::repositories::{ReachableRepositories, RepositoryTrust, SearchScope, reachable_repositories};
use super::repository_scan::RepositoryScan;
use crate::policy::UnaskedConditions;
use crate::tools::sandbox::protected_scan::ProtectedScan;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of variables to override.
const MAX_OVERRIDES: usize = 1_000;
/// Maximum size of all overrides in bytes, limited because the system limits the size of the environment.
const MAX_BYTES: usize = 128 << 10;

/// Characters that start a shell expansion.
const COMPUTES: [char; 3] = ['$', '`', '{'];
/// Wildcard characters, which are matched against file names.
const MATCHES: [char; 3] = ['*', '?', '['];
/// Prefixes of the options that make git enter submodules, and the command that does so.
const ENTERING: [&str; 3] = ["--sub", "--rec", "submodule"];

/// Variables that are set for every hardened line. Because there is no terminal, git must neither prompt nor fetch
/// anything.
const BOTH: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_PROXY_COMMAND", ""),
];
const READING: &[(&str, &str)] =
    &[("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none"), ("GIT_SSH_COMMAND", "false")];
const WRITING: &[(&str, &str)] = &[("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"), ("GIT_SSH_COMMAND", "ssh")];

/// How strictly git is restricted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Strictness {
    /// Git is not restricted.
    Plain,
    /// No program that a repository configures may run.
    NoPrograms(GitPurpose),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum GitPurpose {
    Reads,
    Writes,
}

impl Strictness {
    /// Returns how strictly to restrict a line, given the reason why it may run and the trust in the project.
    pub(in crate::tools) fn for_line(line: &str, unasked: Option<UnaskedConditions>, trust: RepositoryTrust) -> Self {
        if unasked.is_some_and(|unasked| unasked.as_reading) {
            return Self::NoPrograms(GitPurpose::Reads);
        }
        // A user who approves a line in a project without a pending trust decision knows what it does.
        let trusted = match trust {
            RepositoryTrust::Trusted => true,
            RepositoryTrust::NeverAsked => unasked.is_none(),
            RepositoryTrust::Untrusted => false,
        };
        if trusted || !mentions_git(line) { Self::Plain } else { Self::NoPrograms(GitPurpose::Writes) }
    }
}

/// Returns whether a line may start git, because it contains git's name, ignoring quotes and escapes, or a shell
/// expansion.
pub(in crate::tools) fn mentions_git(line: &str) -> bool {
    line.contains(COMPUTES) || strip_quotes(line).contains("git")
}

/// Returns whether git may enter a submodule when it runs a line. Takes into account that git accepts abbreviated
/// options.
fn may_enter_submodules(line: &str) -> bool {
    let plain = strip_quotes(line);
    line.contains(COMPUTES) || line.contains(MATCHES) || ENTERING.iter().any(|word| plain.contains(word))
}

/// Returns a line in lower case and without quotes and escapes, by which a word could be hidden.
fn strip_quotes(line: &str) -> String {
    let plain = line.chars().filter(|letter| !matches!(letter, '\'' | '"' | '\\' | '\n'));
    plain.collect::<String>().to_ascii_lowercase()
}

/// Where git may find repositories and configuration.
pub(in crate::tools) struct GitWorkspace<'a> {
    pub roots: &'a [PathBuf],
    pub home: Option<&'a Path>,
    /// Scan of the workspace that omits large build and package directories, or `None` without a sandbox.
    pub scan: Option<&'a Arc<ProtectedScan>>,
    /// Search of the whole workspace, for use if every repository must be found.
    pub repositories: Option<&'a RepositoryScan>,
}

/// Environment for git, and the gaps that it is known to leave.
#[derive(Debug, Default)]
pub(in crate::tools) struct Hardening {
    variables: Vec<(OsString, OsString)>,
    /// Reasons why git may still start a program that a repository configures.
    pub gaps: Vec<String>,
}

impl Hardening {
    /// Determines the environment for a line that runs in `directory`. Performs blocking I/O.
    pub(in crate::tools) fn find(line: &str, directory: &Path, purpose: GitPurpose, workspace: &GitWorkspace<'_>) -> Self {
        if !mentions_git(line) {
            let mut hardening = Self::default();
            hardening.set(Vec::new(), purpose);
            return hardening;
        }
        let ground = SearchScope {
            directory,
            roots: workspace.roots,
            reads: purpose == GitPurpose::Reads,
            into_submodules: may_enter_submodules(line),
            home: workspace.home,
            known: workspace.scan.map(|scan| scan.now()),
            all: workspace.repositories,
        };
        let ReachableRepositories { files, gaps } = reachable_repositories(&ground);
        let of = match purpose {
            GitPurpose::Reads => LinePurpose::Reading,
            GitPurpose::Writes => LinePurpose::Writing,
        };
        let mut hardening = Self { variables: Vec::new(), gaps: gaps.into_iter().chain(files.gaps).collect() };
        let mut overrides: BTreeMap<Vec<u8>, &'static str> = BTreeMap::new();
        overrides.extend(files.variables.iter().filter_map(|(_, variable)| replacement(variable, of)));
        let mut bytes = 0;
        let fits = |(name, value): &Override| {
            bytes += name.len() + value.len();
            bytes <= MAX_BYTES
        };
        let count = overrides.len();
        let named: Vec<Override> = overrides.into_iter().take(MAX_OVERRIDES).take_while(fits).collect();
        if named.len() < count {
            hardening.gaps.push("the configuration names too many programs".to_owned());
        }
        hardening.set(named, purpose);
        hardening
    }

    fn set(&mut self, named: Vec<Override>, purpose: GitPurpose) {
        let own = match purpose {
            GitPurpose::Reads => READING,
            GitPurpose::Writes => WRITING,
        };
        self.variables.extend(BOTH.iter().chain(own).map(|(name, value)| (OsString::from(name), OsString::from(value))));
        // The last value wins.
        let all: Vec<Override> = named.into_iter().chain(always()).collect();
        self.variables.push(("GIT_CONFIG_COUNT".into(), all.len().to_string().into()));
        for (number, (name, value)) in all.into_iter().enumerate() {
            self.variables.push((format!("GIT_CONFIG_KEY_{number}").into(), OsString::from_vec(name)));
            self.variables.push((format!("GIT_CONFIG_VALUE_{number}").into(), value.into()));
        }
    }

    /// Replaces the git variables in an environment.
    pub(in crate::tools) fn apply(&self, environment: &mut Vec<(OsString, OsString)>) {
        if self.variables.is_empty() {
            return;
        }
        let kept = |name: &OsStr| {
            let name = name.to_string_lossy();
            name == "GIT_CONFIG_GLOBAL" || !(name.starts_with("GIT_") || name == "SSH_ASKPASS")
        };
        environment.retain(|(name, _)| kept(name));
        environment.extend(self.variables.iter().cloned());
    }

    /// Returns the reason why a line needs approval although it must not start a program that the repository
    /// configures, if there is one.
    pub(in crate::tools) fn doubt(&self) -> Option<String> {
        let gap = self.gaps.first()?;
        Some(format!("git may run programs that the repository configures, because {gap}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_strictness_depends_on_the_permission_and_the_trust() {
        let reading = Some(UnaskedConditions { as_reading: true, by_name: true });
        let rule = Some(UnaskedConditions { as_reading: false, by_name: true });
        let of = |line, unasked| {
            [RepositoryTrust::Trusted, RepositoryTrust::NeverAsked, RepositoryTrust::Untrusted]
                .map(|trust| Strictness::for_line(line, unasked, trust))
        };
        let (plain, reads, writes) =
            (Strictness::Plain, Strictness::NoPrograms(GitPurpose::Reads), Strictness::NoPrograms(GitPurpose::Writes));
        assert_eq!(of("ls", reading), [reads; 3]);
        assert_eq!(of("git commit -m x", rule), [plain, writes, writes]);
        assert_eq!(of("g'i'\\t commit -m x", None), [plain, plain, writes]);
        assert_eq!(of("make", rule), [plain; 3]);
    }

    #[test]
    fn git_and_submodule_options_are_detected_in_every_spelling() {
        for line in ["git status", "g'i't log", "g\\it log", "g$''it log", "x=gi; ${x}t log", "gi{t,} log", "$(echo git) log"] {
            assert!(mentions_git(line), "{line}");
        }
        assert!(!mentions_git("ls -l *.rs"));
        for line in [
            "git diff --submodule=diff",
            "git diff --sub'module'=diff",
            "git log -p --sub\"mod\"ule=diff",
            "git show --sub\\module=diff",
            "git diff --submod=diff",
            "git ls-files --recurse-s",
            "x=--subm; git diff ${x}odule=diff",
            "git diff --{submodule,x}=diff",
            "git diff *",
            "git submodule status",
        ] {
            assert!(may_enter_submodules(line), "{line}");
        }
        for line in ["git status --short", "git diff --stat", "git log --oneline -3", "git diff --summary"] {
            assert!(!may_enter_submodules(line), "{line}");
        }
    }

    #[test]
    fn hardening_overrides_git_variables_of_the_environment() {
        let mut hardening = Hardening::default();
        hardening.set(vec![(b"filter.a b.clean".to_vec(), "")], GitPurpose::Reads);
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let mut environment = vec![
            pair("GIT_EXTERNAL_DIFF", "evil"),
            pair("GIT_CONFIG_COUNT", "7"),
            pair("GIT_CONFIG_GLOBAL", "/x"),
            pair("PATH", "/bin"),
        ];
        hardening.apply(&mut environment);
        let of = |name: &str| {
            let mut found = environment.iter().filter(|(known, _)| known == name).map(|(_, value)| value.to_str().unwrap());
            (found.next(), found.next())
        };
        assert_eq!(of("GIT_EXTERNAL_DIFF"), (None, None));
        assert_eq!((of("PATH"), of("GIT_CONFIG_GLOBAL")), ((Some("/bin"), None), (Some("/x"), None)));
        assert_eq!(of("GIT_CONFIG_KEY_0"), (Some("filter.a b.clean"), None));
        let count: usize = of("GIT_CONFIG_COUNT").0.unwrap().parse().unwrap();
        assert_eq!(of(&format!("GIT_CONFIG_KEY_{}", count - 1)).1, None);
        assert!(of(&format!("GIT_CONFIG_KEY_{}", count - 1)).0.is_some() && of(&format!("GIT_CONFIG_KEY_{count}")).0.is_none());
    }
}

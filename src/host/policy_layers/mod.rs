//! Reads the policy layers from their files.

use super::error::CliError;
use super::project::ProjectConfig;
use crate::policy::{AgentLimits, Bundle, BundleError, Layer, Scope, redact};
use crate::protocol::{Mode, Problem, SessionId};
use crate::tools::PolicyStamp;
use std::fs::Metadata;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Path of the managed layer, which no other layer can loosen.
pub(crate) const MANAGED: &str = "/etc/aye/policy.toml";
/// User ID of the required owner of the managed layer's file.
#[cfg(unix)]
const ROOT: u32 = 0;
/// Maximum size of a policy file, in bytes.
const POLICY_BYTES: u64 = 4 << 20;

/// Files from which the policy layers are read.
#[derive(Debug, Clone)]
pub(crate) struct LayerSources {
    /// Policy of the user.
    pub own: PathBuf,
    /// File given with `--policy`, which replaces the user's policy.
    pub given: Option<PathBuf>,
    pub managed: PathBuf,
    /// Rules that the user saved for this project. They are also replaced by `--policy`.
    pub mine: PathBuf,
    /// Policy from a URL, if one is configured.
    pub service: Option<ServiceSource>,
    /// Policy from the session service, if the session is registered.
    pub session: Option<ServiceSource>,
}

/// Policy that is loaded from a URL.
#[derive(Debug, Clone)]
pub(crate) struct ServiceSource {
    pub url: String,
    /// File with the last valid policy from the URL, if there is one.
    pub file: Option<PathBuf>,
}

/// Policy layers, and the policy name shown in the status row.
#[derive(Clone)]
pub(crate) struct Policy {
    pub layers: Vec<Layer>,
    pub name: String,
    /// Hash of all files that were read. It is equal for policies that were read from equal files.
    pub print: String,
}

impl LayerSources {
    /// Returns all files that affect the policy when they change.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = match &self.given {
            Some(given) => vec![given.clone(), self.managed.clone()],
            None => vec![self.own.clone(), self.mine.clone(), self.managed.clone()],
        };
        files.extend(self.service.iter().chain(&self.session).filter_map(|service| service.file.clone()));
        files
    }
}

impl Policy {
    /// Creates a policy from these layers.
    pub(crate) fn from_layers(layers: Vec<Layer>, name: String) -> Self {
        Self { layers, name, print: String::new() }
    }

    /// Returns the redaction rules of all policy layers.
    pub(crate) fn redactions(&self) -> Vec<redact::RedactionRule> {
        self.layers.iter().flat_map(|layer| layer.bundle.redactions.iter().cloned()).collect()
    }

    /// Returns the limits on agents, using the smallest value from all policy layers.
    pub(crate) fn agent_limits(&self) -> AgentLimits {
        self.layers.iter().fold(AgentLimits::default(), |limits, layer| limits.and(layer.bundle.agents))
    }

    /// Returns a record of the policy in effect in this mode, for storage in a patch file.
    pub(crate) fn stamp(&self, mode: Mode) -> PolicyStamp {
        PolicyStamp { hash: self.print.clone(), name: self.name.clone(), mode: mode.as_str().to_owned() }
    }

    pub(crate) fn assemble(sources: &LayerSources, project: Option<&ProjectConfig>) -> Result<Self, CliError> {
        let mut hasher = blake3::Hasher::new();
        let (user, name) = match &sources.given {
            Some(path) => {
                let bundle = bundle(path, &mut hasher, accept_any_owner, Bundle::parse_bytes)?
                    .ok_or_else(|| CliError::usage(format!("policy file `{}` does not exist", path.display())))?;
                (Layer::from_file(Scope::File, bundle, path), path.file_name().unwrap_or_default().to_string_lossy().into_owned())
            }
            None => match bundle(&sources.own, &mut hasher, accept_any_owner, Bundle::parse_bytes)? {
                Some(bundle) => (Layer::from_file(Scope::User, bundle, &sources.own), "user".to_owned()),
                None => (Layer::new(Scope::BuiltIn, Bundle::built_in()?), "built-in".to_owned()),
            },
        };
        let mut policy = Self::from_layers(vec![user], name);
        if let Some(bundle) = bundle(&sources.managed, &mut hasher, check_ownership, Bundle::parse_bytes)? {
            policy.layers.insert(0, Layer::from_file(Scope::Managed, bundle, &sources.managed));
            policy.name = format!("managed + {}", policy.name);
        }
        let urls = sources.service.iter().map(|service| (Scope::Service, service));
        let sessions = sources.session.iter().map(|service| (Scope::ServiceSession, service));
        for (scope, service) in urls.chain(sessions) {
            policy.layers.push(service_layer(scope, service, &mut hasher)?);
            policy.name = format!("service + {}", policy.name);
        }
        if sources.given.is_none()
            && let Some(bundle) = bundle(&sources.mine, &mut hasher, accept_any_owner, Bundle::parse_rules_bytes)?
        {
            policy.layers.push(Layer::from_file(Scope::Mine, bundle, &sources.mine));
        }
        if let Some(bytes) = project.and_then(ProjectConfig::policy_bytes) {
            hasher.update(blake3::hash(bytes).as_bytes());
        }
        if let Some(layer) = project.map_or(Ok(None), ProjectConfig::policy)? {
            policy.layers.push(layer);
            policy.name = format!("{} + project", policy.name);
        }
        policy.print = hasher.finalize().to_hex().to_string();
        Ok(policy)
    }

    /// Returns an error if the policy is restricted to a different session. `session` is `None` if the session has no
    /// ID.
    pub(crate) fn validate_for_session(&self, session: Option<&SessionId>) -> Result<(), CliError> {
        let only = self.layers.iter().filter_map(Layer::session_id);
        match only.into_iter().find(|only| session.is_none_or(|session| session.as_str() != *only)) {
            None => Ok(()),
            Some(only) => Err(CliError::usage(format!("the policy ({}) applies to session `{only}` only", self.name))
                .hint("resume that session, or remove `session_id` from the policy file")),
        }
    }
}

/// Returns the last valid policy from a URL or from the session service.
fn service_layer(scope: Scope, service: &ServiceSource, hasher: &mut blake3::Hasher) -> Result<Layer, CliError> {
    let missing = || {
        let problem = Problem::new(format!("the policy from `{}` has not been loaded yet", service.url));
        CliError::usage(problem.hint("run `aye policy pull`"))
    };
    let path = service.file.as_ref().ok_or_else(missing)?;
    let bundle = bundle(path, hasher, accept_any_owner, Bundle::parse_bytes)?.ok_or_else(missing)?;
    Ok(Layer::from_file(scope, bundle, path))
}

/// Reads a bundle from a file after `check` has accepted the open file. Returns `None` if the file does not exist.
fn bundle(
    path: &Path,
    hasher: &mut blake3::Hasher,
    check: impl Fn(&Path, &Metadata) -> Result<(), CliError>,
    parse: impl Fn(&[u8], &str) -> Result<Bundle, BundleError>,
) -> Result<Option<Bundle>, CliError> {
    hasher.update(b"\0");
    let Some(bytes) = read(path, check)? else { return Ok(None) };
    hasher.update(blake3::hash(&bytes).as_bytes());
    parse(&bytes, &path.display().to_string()).map(Some).map_err(|error| super::policy_error::invalid_policy(&error, &bytes))
}

/// Accepts a file with any owner and mode.
fn accept_any_owner(_: &Path, _: &Metadata) -> Result<(), CliError> {
    Ok(())
}

/// Returns the content of a policy file, or `None` if the file does not exist.
pub(crate) fn policy_bytes(path: &Path) -> Result<Option<Vec<u8>>, CliError> {
    read(path, accept_any_owner)
}

fn read(path: &Path, check: impl Fn(&Path, &Metadata) -> Result<(), CliError>) -> Result<Option<Vec<u8>>, CliError> {
    let name = path.display().to_string();
    let unreadable =
        |error: &std::io::Error| CliError::usage(Problem::new(format!("cannot read the policy `{name}`")).because(error));
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    check(path, &metadata)?;
    let mut bytes = Vec::new();
    file.take(POLICY_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > POLICY_BYTES {
        let size = metadata.len();
        return Err(CliError::usage(format!("policy `{name}` is too large: {size} bytes, limit {POLICY_BYTES}")));
    }
    Ok(Some(bytes))
}

/// Rejects a file that other users can write to, because they could change the policy (as in CVE-2026-35603).
#[cfg(unix)]
fn check_ownership(path: &Path, metadata: &Metadata) -> Result<(), CliError> {
    let directory = path.parent().and_then(|parent| parent.metadata().ok());
    for (what, metadata) in [("the file", Some(metadata)), ("its directory", directory.as_ref())] {
        if let Some(why) = metadata.and_then(|metadata| writable_by_others(metadata, root_uid())) {
            let problem = Problem::new(format!("cannot use the managed policy `{}`", path.display()));
            let hint = "the file and its directory must be owned by root, and writable only by root";
            return Err(CliError::usage(problem.because(format!("{what} {why}")).hint(hint)));
        }
    }
    Ok(())
}

/// Returns the user ID that owns root's files. In the user namespace of `aye exec --patch`, root has no ID of its own.
/// The namespace is entered only after the files have been checked outside it.
#[cfg(unix)]
fn root_uid() -> u32 {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let map = text("/proc/self/uid_map");
    let has_root = map.lines().any(|row| row.split_ascii_whitespace().next() == Some("0"));
    if map.is_empty() || has_root { ROOT } else { text("/proc/sys/kernel/overflowuid").trim().parse().unwrap_or(ROOT) }
}

#[cfg(unix)]
fn writable_by_others(metadata: &Metadata, owner: u32) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    if metadata.uid() != owner {
        Some("is owned by another user")
    } else if metadata.mode() & 0o022 != 0 {
        Some("is writable by its group or by everyone")
    } else {
        None
    }
}

#[cfg(not(unix))]
fn check_ownership(_path: &Path, _metadata: &Metadata) -> Result<(), CliError> {
    Ok(())
}

#[cfg(test)]
mod tests;

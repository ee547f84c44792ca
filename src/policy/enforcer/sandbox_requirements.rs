//! The policy's sandbox requirements for commands, expressed as paths. Another module checks which of the paths exist.

use crate::policy::bundle::{BuildOutputMode, Cache, CommandLimits, Network, RuleDecision, SandboxSetting, Terms};
use crate::policy::excluded::ExcludedPaths;
use crate::policy::files::is_blocked_as_credentials;
use crate::policy::layer::{CompiledLayer, FileRules, is_in_effect};
use crate::policy::paths::{
    Context, PROTECTED, PathPatterns, credential_places, is_protected_name, opened_entry, protected, start_up_places,
};
use crate::protocol::Mode;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The policy's requirements for the sandbox in which commands run.
#[derive(Debug, Clone)]
pub struct SandboxRequirements {
    pub sandbox: SandboxSetting,
    pub network: Network,
    pub cache: Cache,
    pub limits: CommandLimits,
    pub build_output: BuildOutputMode,
    /// The workspace and its additional roots.
    pub roots: Vec<PathBuf>,
    /// Workspace paths that a command may write to.
    pub written: Vec<PathBuf>,
    /// Additional writable paths.
    pub writable: Vec<PathBuf>,
    /// Paths that are writable although they are inside read-only paths, because the user listed them.
    pub reopened: Vec<PathBuf>,
    /// Read-only paths, which commands cannot create if they do not exist.
    pub read_only: Vec<PathBuf>,
    /// Paths that are read-only if they exist.
    pub read_only_if_there: Vec<PathBuf>,
    /// Readable paths outside the workspace: those that the policy lists for commands or for reading, and the user's
    /// skills.
    pub readable: Vec<PathBuf>,
    /// Plugin skills, which are readable although aye's data directory is otherwise hidden.
    pub plugin_skills: Vec<PathBuf>,
    /// Paths that are hidden from all commands.
    pub hidden: Vec<PathBuf>,
    /// Rules for entries that exist: protected names and glob matches.
    pub marks: ProtectionRules,
    /// Descriptions of policy rules that no sandbox can enforce.
    pub unheld: Vec<String>,
}

/// Type of protection for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryProtection {
    /// The entry runs code when the folder is opened, but commands may write to it. aye only watches for its creation.
    Watched,
    /// The entry runs code when the folder is opened. It is read-only except for git, which must be able to check it
    /// out.
    RunsCode,
    ReadOnly,
    Hidden,
}

/// Rules that determine how entries are protected from commands.
#[derive(Debug, Clone, Default)]
pub struct ProtectionRules {
    hidden: Vec<PathPatterns>,
    read_only: Vec<PathPatterns>,
    opened: Vec<PathBuf>,
    excluded: Arc<[ExcludedPaths]>,
}

impl ProtectionRules {
    /// Returns how an entry is protected, or `None` if commands may write to it. The entry's directory must not be
    /// protected itself.
    pub fn protection_of(&self, path: &Path, name: &str) -> Option<EntryProtection> {
        if self.hidden.iter().any(|places| places.is_exact_match(path))
            || self.excluded.iter().any(|list| list.excludes_entry(path))
        {
            return Some(EntryProtection::Hidden);
        }
        let kept = if is_protected_name(name) || self.read_only.iter().any(|places| places.is_exact_match(path)) {
            EntryProtection::ReadOnly
        } else if opened_entry(path)? {
            EntryProtection::RunsCode
        } else {
            EntryProtection::Watched
        };
        (!self.opened.iter().any(|opened| opened == path)).then_some(kept)
    }
}

impl SandboxRequirements {
    /// Returns whether a command may write to the whole workspace apart from protected paths.
    pub fn is_whole(&self) -> bool {
        self.roots.iter().all(|root| self.written.contains(root))
    }
}

/// Policy from which the requirements are derived.
pub(crate) struct RequirementSource<'a> {
    pub layers: &'a [CompiledLayer],
    pub context: &'a Context,
    pub terms: &'a Terms,
    pub excluded: &'a Arc<[ExcludedPaths]>,
}

impl<'a> RequirementSource<'a> {
    /// Returns the sandbox requirements for commands. `homes` lists the home directories whose credentials are hidden.
    pub(crate) fn requirements(&self, homes: &[PathBuf], now: Timestamp) -> SandboxRequirements {
        let (context, terms) = (self.context, self.terms);
        let own = terms.sandbox.unwrap_or_default();
        let sandbox = if context.mode == Mode::Plan { SandboxSetting::ReadOnly } else { own };
        let mut unheld = Vec::new();
        let written = if sandbox == SandboxSetting::ReadOnly { Vec::new() } else { self.writable_paths(now, &mut unheld) };
        let named = terms.writable_paths.as_deref().unwrap_or_default();
        let named = PathPatterns::new(named, context, false);
        for (_, glob) in named.globs() {
            unheld.push(format!("`writable_paths`: the sandbox supports paths, not globs; `{glob}` has no effect"));
        }
        let open = |place: &&Path| {
            let shut = protected(place, context).is_some_and(|protected| !protected.may_be_opened);
            sandbox != SandboxSetting::ReadOnly && !shut && !context.is_own(place)
        };
        let (reopened, writable): (Vec<PathBuf>, Vec<PathBuf>) =
            named.literal().filter(open).map(Path::to_owned).partition(|place| protected(place, context).is_some());
        let areas: Vec<&PathBuf> = written.iter().chain(&writable).collect();
        let in_area = |place: &PathBuf| areas.iter().any(|area| place.starts_with(area));
        let of_homes = |places: fn(&Path) -> Vec<PathBuf>| homes.iter().chain([&context.home]).flat_map(move |home| places(home));
        let mut read_only: Vec<PathBuf> = context.roots.iter().flat_map(|place| protected_names_in(place)).collect();
        read_only.extend(of_homes(|home| start_up_places(home).collect()));
        read_only.extend(
            self.denied_paths(|layer| layer.write.as_ref(), now)
                .flat_map(|places| places.literal().map(Path::to_owned).collect::<Vec<_>>()),
        );
        read_only.retain(|place| in_area(place) && !reopened.contains(place));
        let mut hidden = context.own.clone();
        let credentials = of_homes(|home| credential_places(home).collect());
        hidden.extend(credentials.filter(|place| is_blocked_as_credentials(place, self.layers, context)));
        hidden.extend(
            self.denied_paths(|layer| layer.read.as_ref(), now)
                .flat_map(|places| places.literal().map(Path::to_owned).collect::<Vec<_>>()),
        );
        let marks = self.marks(reopened.clone(), now);
        let of_others = |glob: &str| !PROTECTED.iter().any(|name| glob.contains(&format!("/{name}/")));
        for (verb, list) in [("read", &marks.hidden), ("written", &marks.read_only)] {
            for (_, glob) in list.iter().flat_map(PathPatterns::globs).filter(|(_, glob)| of_others(glob)) {
                unheld.push(format!(
                    "`{glob}` must not be {verb}, but the sandbox blocks only files that exist when a command starts, not files \
                     that it creates later"
                ));
            }
        }
        let readable = self.readable(&mut unheld);
        unique(&mut unheld);
        unique(&mut hidden);
        unique(&mut read_only);
        SandboxRequirements {
            sandbox,
            network: terms.network.unwrap_or_default(),
            cache: terms.cache.unwrap_or_default(),
            limits: terms.limits,
            build_output: terms.build_output.unwrap_or_default(),
            roots: context.roots.clone(),
            read_only_if_there: protected_names_except(&writable, &reopened),
            written,
            writable,
            reopened,
            plugin_skills: self.plugin_skills(&readable, &hidden),
            readable,
            read_only,
            hidden,
            marks,
            unheld,
        }
    }

    /// Returns those readable paths that are plugin skills and that no rule hides.
    fn plugin_skills(&self, readable: &[PathBuf], hidden: &[PathBuf]) -> Vec<PathBuf> {
        let is_shut =
            |place: &PathBuf| hidden.iter().any(|hidden| place.starts_with(hidden) && !self.context.own.contains(hidden));
        let skills = readable.iter().filter(|place| self.context.is_in_plugin_skill(place) && !is_shut(place));
        skills.cloned().collect()
    }

    fn marks(&self, opened: Vec<PathBuf>, now: Timestamp) -> ProtectionRules {
        let with_globs = |rules: fn(&CompiledLayer) -> Option<&FileRules>| -> Vec<PathPatterns> {
            self.denied_paths(rules, now).filter(|places| places.globs().next().is_some()).cloned().collect()
        };
        let (hidden, read_only) = (with_globs(|layer| layer.read.as_ref()), with_globs(|layer| layer.write.as_ref()));
        ProtectionRules { hidden, read_only, opened, excluded: Arc::clone(self.excluded) }
    }

    /// Returns the workspace paths that `File.Write` allows: the whole workspace, or the paths allowed by every
    /// `allowed_paths` list.
    fn writable_paths(&self, now: Timestamp, unheld: &mut Vec<String>) -> Vec<PathBuf> {
        let lists = || self.layers.iter().filter_map(|layer| layer.write.as_ref()?.allowed.as_ref());
        let context = self.context;
        let mut places = context.roots.clone();
        places.extend(lists().flat_map(PathPatterns::literal).filter(|place| context.in_workspace(place)).map(Path::to_owned));
        for (start, glob) in lists().flat_map(PathPatterns::globs) {
            if context.in_workspace(start) && lists().any(|list| list.covers(start)) {
                places.push(start.to_owned());
            } else if !context.roots.iter().all(|root| lists().all(|list| list.covers(root))) {
                unheld.push(format!("`allowed_paths`: commands can write only to whole directories, not to the glob `{glob}`"));
            }
        }
        let shut = |place: &Path| {
            self.layers
                .iter()
                .any(|layer| layer.write.as_ref().is_some_and(|rules| rules.denying_rule(layer.scope, place, now).is_some()))
        };
        places.retain(|place| lists().all(|list| list.covers(place)) && !shut(place));
        places.sort();
        places.dedup();
        let all = places.clone();
        places.retain(|place| !all.iter().any(|other| other != place && place.starts_with(other)));
        places
    }

    /// Returns the readable paths outside the workspace: those in `readable_paths`, those allowed by every
    /// `allowed_paths` list of `File.Read`, and the user's skills.
    fn readable(&self, unheld: &mut Vec<String>) -> Vec<PathBuf> {
        let context = self.context;
        let named = PathPatterns::new(self.terms.readable_paths.as_deref().unwrap_or_default(), context, false);
        for (_, glob) in named.globs() {
            unheld.push(format!("`readable_paths`: the sandbox supports paths, not globs; `{glob}` has no effect"));
        }
        let lists = || self.layers.iter().filter_map(|layer| layer.read.as_ref()?.allowed.as_ref());
        let starts = lists().flat_map(|list| list.literal().chain(list.globs().map(|(start, _)| start)));
        let by_reading = starts.filter(|place| lists().all(|list| list.covers(place)));
        let limits = || self.layers.iter().filter(|layer| layer.scope.limits_skills());
        let may_be_read =
            |skill: &&Path| limits().filter_map(|layer| layer.read.as_ref()?.allowed.as_ref()).all(|list| list.covers(skill));
        let is_granted = self.layers.iter().any(|layer| layer.scope.grants() && layer.read.is_some());
        let skills = context.skills.iter().filter(|_| is_granted).map(PathBuf::as_path).filter(may_be_read);
        let mut readable: Vec<PathBuf> = named.literal().chain(by_reading).chain(skills).map(Path::to_owned).collect();
        let is_closed = |place: &Path| context.is_own(place) && !context.is_in_plugin_skill(place);
        readable.retain(|place| !context.in_workspace(place) && !is_closed(place));
        unique(&mut readable);
        readable
    }

    /// Returns the paths that the policy layers block or deny for one capability.
    fn denied_paths(
        &self,
        rules: fn(&CompiledLayer) -> Option<&FileRules>,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a PathPatterns> {
        self.layers.iter().filter_map(rules).flat_map(move |rules| {
            let denied = rules.rules.iter().map(|owned| &owned.rule);
            let denied =
                denied.filter(move |rule| rule.rule.decision == RuleDecision::Deny && is_in_effect(rule.rule.expires_at, now));
            std::iter::once(&rules.blocked).chain(denied.map(|rule| &rule.places))
        })
    }
}

/// Returns the protected names directly below these directories, except those that the user opened for writing.
fn protected_names_except(directories: &[PathBuf], opened: &[PathBuf]) -> Vec<PathBuf> {
    let names = directories.iter().flat_map(|directory| protected_names_in(directory));
    names.filter(|place| !opened.contains(place)).collect()
}

/// Returns the protected names directly below a directory.
fn protected_names_in(directory: &Path) -> Vec<PathBuf> {
    PROTECTED.iter().map(|name| directory.join(name)).collect()
}

fn unique<T: Ord>(all: &mut Vec<T>) {
    all.sort();
    all.dedup();
}

#[cfg(test)]
mod tests;

//! Escalation: paths that an approval may open to a command that the sandbox blocked.

use super::super::layer::Ready;
use super::super::paths::{Places, is_in_other_home, of_the_machine, protected};
use super::Enforcer;
use crate::protocol::{Action, Place, Target, VerdictKind};
use jiff::Timestamp;
use std::path::Path;

impl Enforcer {
    /// Returns whether an approval may let one command write to this real path outside the workspace: never to protected paths,
    /// to aye's own files, to those of the kernel, or against a rule.
    pub fn may_be_opened(&self, path: &Path) -> bool {
        let guarded = self.context.is_own(path) || protected(path, &self.context).is_some() || of_the_machine(path, true);
        let shut = |layer: &Ready| {
            let rules = layer.write.as_ref();
            rules.is_some_and(|rules| rules.shut(layer.scope, path, Timestamp::UNIX_EPOCH).is_some())
        };
        !guarded && !self.layers.iter().any(shut)
    }

    /// Returns whether an approval may let one command read this real path outside the workspace: never credentials or aye's
    /// own files, and never against a rule.
    pub fn may_be_shown(&self, path: &Path) -> bool {
        let context = &self.context;
        let guarded = context.is_own(path)
            || context.credential_place(path).is_some()
            || is_in_other_home(path, context)
            || of_the_machine(path, false);
        let shut = |layer: &Ready| {
            let rules = layer.read.as_ref();
            rules.is_some_and(|rules| rules.shut(layer.scope, path, Timestamp::UNIX_EPOCH).is_some())
        };
        !guarded && !self.layers.iter().any(shut)
    }

    /// Returns whether a command that a rule allows may follow a symlink to this real path: into the workspace, into
    /// `readable_paths`, and to whatever can be read without approval. Never to a blocked path.
    pub fn may_be_followed(&self, path: &Path) -> bool {
        let named = || self.terms().readable_paths.clone().unwrap_or_default();
        let inside = self.context.in_workspace(path) || Places::new(&named(), &self.context, false).reach(path).is_some();
        if inside {
            return self.may_be_shown(path);
        }
        let target = Target { given: String::new(), real: path.to_owned(), place: Place::File { bytes: 0 } };
        self.explain(&[Action::Read { target }], Timestamp::UNIX_EPOCH).verdict == VerdictKind::Allow
    }
}

//! Escalation: the places that an approval may open to a command that the sandbox blocked.

use super::super::layer::Ready;
use super::super::paths::{Places, is_in_other_home, of_the_machine, protected};
use super::Enforcer;
use crate::protocol::{Action, Place, Target, VerdictKind};
use jiff::Timestamp;
use std::path::Path;

impl Enforcer {
    /// Whether a person may be asked to let one command write at this real path outside the workspace: never where something
    /// is protected, aye's own, the kernel's, or shut by a rule.
    pub fn may_be_opened(&self, path: &Path) -> bool {
        let guarded = self.context.is_own(path) || protected(path, &self.context).is_some() || of_the_machine(path, true);
        let shut = |layer: &Ready| {
            let rules = layer.write.as_ref();
            rules.is_some_and(|rules| rules.shut(layer.scope, path, Timestamp::UNIX_EPOCH).is_some())
        };
        !guarded && !self.layers.iter().any(shut)
    }

    /// Whether a person may be asked to let one command read this real path outside the workspace: never where credentials or
    /// aye's own files lie, nor where a rule shuts it.
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

    /// Whether a command that a rule allows may read this real path where a link leads it there: what is in the workspace or
    /// named by `readable_paths`, and whatever else is read without an approval. Never what is blocked.
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

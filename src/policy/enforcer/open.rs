//! Which places a yes may open to a command that the sandbox kept from them.

use super::super::layer::Ready;
use super::super::paths::{is_in_other_home, of_the_machine, protected};
use super::Enforcer;
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
}

//! Workspace of the screen's session. This is initially the workspace in which the screen was opened, and later that of
//! any session that is resumed.

use crate::host::context::AppContext;
use crate::host::policy_layers::Policy;
use crate::host::redaction;
use crate::policy::redact::{RedactionRule, Redactor};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handle to the current workspace. All clones share the same state.
#[derive(Clone)]
pub(crate) struct CurrentWorkspace(Arc<Mutex<Inner>>);

struct Inner {
    app: AppContext,
    /// Redaction rules from the policy.
    rules: Vec<RedactionRule>,
    /// Redactor, created when it is first needed, so it does not delay the first frame.
    redactor: Option<Arc<Redactor>>,
}

impl CurrentWorkspace {
    pub(crate) fn new(app: &AppContext, policy: &Policy) -> Self {
        Self(Arc::new(Mutex::new(Inner { app: app.clone(), rules: policy.redactions(), redactor: None })))
    }

    /// Sets the session's context and policy.
    pub(crate) fn set(&self, app: &AppContext, policy: &Policy) {
        *self.lock() = Inner { app: app.clone(), rules: policy.redactions(), redactor: None };
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.lock().app.workspace.clone()
    }

    /// Returns the redactor used for the prompt history.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        let mut spot = self.lock();
        let Inner { app, rules, redactor } = &mut *spot;
        redactor.get_or_insert_with(|| redaction::redactor(app, rules.clone(), &[])).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

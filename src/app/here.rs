//! Where the session of a screen is: the place that it began in, until a session that is resumed brings another one along.

use super::layers::Policy;
use super::place::Place;
use super::redaction;
use crate::policy::redact::{Redactor, Rule};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cheap to clone; all clones say the same.
#[derive(Clone)]
pub struct Here(Arc<Mutex<Spot>>);

struct Spot {
    place: Place,
    /// What is secret besides what always is.
    rules: Vec<Rule>,
    /// Made for the first prompt: the first frame does not wait for it.
    redactor: Option<Arc<Redactor>>,
}

impl Here {
    pub fn new(place: &Place, policy: &Policy) -> Self {
        Self(Arc::new(Mutex::new(Spot { place: place.clone(), rules: policy.redactions(), redactor: None })))
    }

    /// The session is there, under this policy.
    pub fn moves_to(&self, place: &Place, policy: &Policy) {
        *self.spot() = Spot { place: place.clone(), rules: policy.redactions(), redactor: None };
    }

    pub fn workspace(&self) -> PathBuf {
        self.spot().place.workspace.clone()
    }

    /// What a prompt is kept without.
    pub fn redactor(&self) -> Arc<Redactor> {
        let mut spot = self.spot();
        let Spot { place, rules, redactor } = &mut *spot;
        redactor.get_or_insert_with(|| redaction::redactor(place, rules.clone(), &[])).clone()
    }

    fn spot(&self) -> MutexGuard<'_, Spot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

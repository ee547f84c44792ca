//! Doubts about a plan: facts on disk that require approval although the policy allows the call.

use crate::policy::UnaskedConditions;

/// Reasons for approval, by the kind of rule that allows the call. A call that the user approves runs despite these
/// doubts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Doubts {
    /// Reason for a call that would run without approval and may have effects.
    pub unasked: Option<String>,
    /// Reason for a command line that a rule allows because of its program names.
    pub by_name: Option<String>,
    /// Reason for a command line that is allowed because it only reads.
    pub as_reading: Option<String>,
    /// Reason for a command line that a rule allows because of its words: a symlink redirects one of its operands.
    pub through_links: Option<String>,
    /// Reason for any call: a skill does not list the tool, or a file of a skill changed. Approval is required before
    /// the run.
    pub skill: Option<String>,
    /// Reason for any call: a hook requires approval.
    pub hook: Option<String>,
    /// Reason for any call: the user reviews the changes before they are applied.
    pub review: Option<String>,
}

impl Doubts {
    /// Returns the reason for approval that applies to any call.
    pub(super) fn about_any_call(&self) -> Option<String> {
        let reasons: Vec<&str> = [&self.skill, &self.hook, &self.review].into_iter().flatten().map(String::as_str).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Returns the reason for approval of a call that the policy allows on these grounds.
    pub(super) fn reason_to_ask(&self, relies: UnaskedConditions) -> Option<&str> {
        let by_name = self.by_name.as_deref().filter(|_| relies.by_name || relies.as_reading);
        let own = if relies.as_reading { self.as_reading.as_deref() } else { self.unasked.as_deref() };
        let through_links = self.through_links.as_deref().filter(|_| relies.by_name);
        own.or(by_name).or(through_links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_applies_only_to_its_own_kind_of_allow_verdict() {
        let doubts = Doubts { by_name: Some("name".to_owned()), as_reading: Some("reading".to_owned()), ..Doubts::default() };
        let about = |as_reading, by_name| doubts.reason_to_ask(UnaskedConditions { as_reading, by_name }).map(str::to_owned);
        assert_eq!(about(false, false), None);
        assert_eq!(about(false, true).as_deref(), Some("name"));
        assert_eq!(about(true, false).as_deref(), Some("reading"));
        let doubts = Doubts { as_reading: None, ..doubts };
        assert_eq!(doubts.reason_to_ask(UnaskedConditions { as_reading: true, by_name: false }), Some("name"));
        let doubts = Doubts { by_name: None, unasked: Some("more".to_owned()), ..doubts };
        assert_eq!(doubts.reason_to_ask(UnaskedConditions::default()), Some("more"));
        assert_eq!(doubts.reason_to_ask(UnaskedConditions { as_reading: true, by_name: true }), None);
        let doubts = Doubts { through_links: Some("link".to_owned()), ..Doubts::default() };
        let about = |as_reading, by_name| doubts.reason_to_ask(UnaskedConditions { as_reading, by_name }).map(str::to_owned);
        assert_eq!([about(true, true), about(false, true)], [Some("link".to_owned()), Some("link".to_owned())]);
        assert_eq!([about(true, false), about(false, false)], [None, None], "without approval any file may be read");
    }
}

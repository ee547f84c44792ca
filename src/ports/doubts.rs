//! Doubts about a plan: facts on disk that make a call require approval even though the policy allows it.

use crate::policy::UnaskedConditions;

/// Reasons to require approval, grouped by how the policy allows the call. Once the user approves the call, it runs
/// despite these doubts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Doubts {
    /// Reason that applies if the call would run without approval and may have effects.
    pub unasked: Option<String>,
    /// Reason that applies if a rule allows the command line by its program names.
    pub by_name: Option<String>,
    /// Reason that applies if the command line is allowed because it is read-only.
    pub as_reading: Option<String>,
    /// Reason that applies if a rule allows the command line by its text: a symlink redirects one of its operands.
    pub through_links: Option<String>,
    /// Reason that applies to any call: a skill does not list the tool, or one of a skill's files has changed.
    pub skill: Option<String>,
    /// Reason that applies to any call: a hook requires approval.
    pub hook: Option<String>,
    /// Reason that applies to any call: the user reviews changes before they are applied.
    pub review: Option<String>,
}

impl Doubts {
    /// Returns the combined reasons that apply to any call, or `None` if there are none.
    pub(super) fn about_any_call(&self) -> Option<String> {
        let reasons: Vec<&str> = [&self.skill, &self.hook, &self.review].into_iter().flatten().map(String::as_str).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Returns the reason that applies to a call the policy allows under these conditions, if any.
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

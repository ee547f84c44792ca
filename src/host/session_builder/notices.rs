//! Notices that inform the user about what happened when a session was opened.

use super::front_end::NoticeTarget;
use crate::host::console::warn;

/// Notices in order. Each one is reported only once.
#[derive(Debug)]
pub(crate) struct SessionNotices {
    target: NoticeTarget,
    reported: Vec<String>,
    /// Number of notices that the front end has already retrieved.
    taken: usize,
}

impl SessionNotices {
    pub(crate) fn new(target: NoticeTarget) -> Self {
        Self { target, reported: Vec::new(), taken: 0 }
    }

    pub(crate) fn add(&mut self, notice: String) {
        if self.reported.contains(&notice) {
            return;
        }
        if matches!(self.target, NoticeTarget::Stderr | NoticeTarget::Both) {
            warn(&notice);
        }
        self.reported.push(notice);
    }

    pub(crate) fn add_all(&mut self, notices: impl IntoIterator<Item = String>) {
        for notice in notices {
            self.add(notice);
        }
    }

    /// Returns the notices that the front end has not retrieved yet.
    pub(crate) fn take(&mut self) -> Vec<String> {
        let new = self.reported[self.taken..].to_vec();
        self.taken = self.reported.len();
        if self.target == NoticeTarget::Stderr { Vec::new() } else { new }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_end_receives_each_notice_once_unless_it_was_printed_instead() {
        for (target, received) in [(NoticeTarget::FrontEnd, 2), (NoticeTarget::Both, 2), (NoticeTarget::Stderr, 0)] {
            let mut notices = SessionNotices::new(target);
            notices.add_all(["one".to_owned(), "two".to_owned(), "one".to_owned()]);
            assert_eq!(notices.take().len(), received, "{target:?}");
            notices.add("two".to_owned());
            assert!(notices.take().is_empty(), "{target:?}");
        }
    }
}

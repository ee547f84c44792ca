use super::*;
use proptest::prelude::*;

use Role::{Assistant, Tool, User};

fn message(index: usize, role: Role, token_count: u64, task: &str) -> Message {
    Message {
        message_id: MessageId::new(format!("msg_{index:05}")),
        role,
        content: vec![Part::Text { text: format!("{index}") }],
        token_count,
        task_id: TaskId::new(task),
        step_id: None,
        timestamp: jiff::Timestamp::UNIX_EPOCH,
    }
}

fn thread(roles: &[(Role, u64)]) -> Thread {
    let mut thread = Thread::default();
    for (index, (role, token_count)) in roles.iter().enumerate() {
        thread.push(message(index, *role, *token_count, "task_001"));
    }
    thread
}

fn texts(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().map(|message| message.text().replace("\n\n", " ")).collect()
}

fn window(thread: &mut Thread, budget: u64) -> Vec<String> {
    thread.fit(budget);
    texts(&thread.window())
}

fn summary(index: usize, token_count: u64) -> Message {
    let content = vec![Part::Text { text: format!("summary {index}") }];
    Message { content, ..message(index, User, token_count, "task_001") }
}

/// Asserts that the messages meet the requirements of all providers.
fn check(messages: &[Arc<Message>]) {
    assert_eq!(messages[0].role, User);
    for pair in messages.windows(2) {
        assert!(pair[1].role != Tool || pair[0].role == Assistant, "results without their answer: {:?}", texts(messages));
    }
}

#[test]
fn a_thread_that_fits_is_sent_in_full() {
    let mut thread = thread(&[(User, 10), (Assistant, 10), (Tool, 10), (Assistant, 10)]);
    assert_eq!(window(&mut thread, 100), ["0", "1", "2", "3"]);
}

#[test]
fn the_oldest_messages_are_dropped_but_the_task_prompt_is_kept() {
    let mut thread = thread(&[(User, 10), (Assistant, 40), (Tool, 40), (Assistant, 10), (Tool, 10), (Assistant, 5)]);
    assert_eq!(window(&mut thread, 60), ["[Earlier conversation truncated — 2 messages removed] 0", "3", "4", "5"]);
    for index in 6..9 {
        thread.push(message(index, Assistant, 20, "task_001"));
    }
    assert_eq!(window(&mut thread, 60), ["[Earlier conversation truncated — 7 messages removed] 0", "8"]);
}

#[test]
fn a_response_is_never_separated_from_its_tool_results() {
    for budget in 1..140 {
        let mut thread = thread(&[
            (User, 10),
            (Assistant, 20),
            (Tool, 30),
            (Assistant, 20),
            (Tool, 30),
            (User, 10),
            (Assistant, 5),
            (Tool, 5),
        ]);
        thread.fit(budget);
        check(&thread.window());
        assert_eq!(thread.window().last().unwrap().text(), "7");
    }
}

#[test]
fn a_summary_comes_first_and_the_task_prompt_is_kept() {
    let mut thread = Thread::default();
    for (index, role) in [User, Assistant, User, Assistant, Tool, Assistant, Tool].into_iter().enumerate() {
        thread.push(message(index, role, 10, if index < 2 { "task_001" } else { "task_002" }));
    }
    let cut = thread.plan_compaction(25, Some(&TaskId::new("task_002"))).unwrap();
    assert_eq!((cut.index, cut.summarized_count(), cut.freed), (5, 4, 40));
    assert!(thread.compact(&MessageId::new("msg_00004"), &cut.verbatim, summary(7, 5)));
    assert_eq!(texts(&thread.window()), ["summary 7", "2", "5", "6"]);
    assert_eq!(thread.tokens(), 35);
    assert!(thread.has_summary() && thread.undo() && !thread.has_summary());
    assert_eq!(texts(&thread.window()), ["0", "1", "2", "3", "4", "5", "6"]);
    assert_eq!(thread.tokens(), 70);
    assert!(!thread.undo());
}

#[test]
fn summaries_nest_and_are_undone_one_by_one_even_after_messages_were_dropped() {
    let mut thread = thread(&[(User, 10), (Assistant, 10), (Assistant, 10), (Assistant, 10)]);
    assert!(thread.compact(&MessageId::new("msg_00002"), &[MessageId::new("msg_00000")], summary(4, 5)));
    thread.push(message(5, Assistant, 10, "task_001"));
    assert!(thread.compact(&MessageId::new("msg_00003"), &[MessageId::new("msg_00000")], summary(6, 5)));
    assert_eq!(texts(&thread.window()), ["summary 6", "0", "5"]);
    thread.push(message(7, Assistant, 100, "task_001"));
    thread.push(message(8, Assistant, 10, "task_001"));
    assert_eq!(thread.fit(100), Some(2));
    assert_eq!(texts(&thread.window()), ["[Earlier conversation truncated — 2 messages removed] summary 6", "0", "8"]);
    assert!(thread.undo());
    assert_eq!(texts(&thread.window()), ["summary 4", "0", "3", "5", "7", "8"]);
    assert!(thread.undo());
    assert_eq!(texts(&thread.window()), ["0", "1", "2", "3", "5", "7", "8"]);
}

#[test]
fn a_summary_written_twice_is_applied_once() {
    let mut thread = thread(&[(User, 10), (Assistant, 10), (User, 10)]);
    let until = MessageId::new("msg_00001");
    assert!(thread.compact(&until, &[], summary(3, 5)) && !thread.compact(&until, &[], summary(3, 5)));
    assert_eq!(texts(&thread.window()), ["summary 3", "2"]);
}

#[test]
fn a_summary_whose_last_message_is_missing_ends_at_the_preceding_message() {
    let mut thread = thread(&[(User, 10), (Assistant, 10)]);
    thread.push(message(4, User, 10, "task_001"));
    assert!(thread.compact(&MessageId::new("msg_00003"), &[], summary(5, 5)));
    assert_eq!(texts(&thread.window()), ["summary 5", "4"]);
}

#[test]
fn the_input_for_a_summary_is_truncated_at_its_start() {
    let thread = thread(&[(User, 10), (Assistant, 40), (Tool, 40), (Assistant, 10), (Tool, 10), (User, 5)]);
    assert_eq!(texts(&thread.messages_before(5, 200)), ["0", "1", "2", "3", "4"]);
    assert_eq!(texts(&thread.messages_before(5, 60)), ["[Earlier conversation truncated — 3 messages removed] ", "3", "4"]);
    assert!(thread.messages_before(5, 5).is_empty());
}

#[test]
fn dropped_messages_are_packed_to_save_memory() {
    let mut thread = Thread::default();
    for index in 0..2_000 {
        let text = format!("line {index}\n").repeat(200);
        thread.push(Message { content: vec![Part::Text { text }], ..message(index, User, 500, "task_001") });
    }
    let bytes: usize = thread.messages().iter().map(|message| message.text().len()).sum();
    thread.fit(10_000);
    let Some(RemovedRange { removed: PackedMessage::Small { bytes: packed, .. }, .. }) = thread.folds.last() else {
        panic!("nothing was packed")
    };
    assert!(bytes > 3_000_000 && packed.len() * 10 < bytes, "{} of {bytes}", packed.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Tests steps, compactions, cuts and undos in any order: every thread is valid for all providers, and every
    /// message can be restored.
    #[test]
    fn any_sequence_of_cuts_leaves_a_valid_thread_and_can_be_undone(happenings in prop::collection::vec(any::<[u8; 2]>(), 1..60)) {
        let mut thread = Thread::default();
        let mut all: Vec<String> = Vec::new();
        let mut number = 0;
        let mut push = |thread: &mut Thread, all: &mut Vec<String>, role: Role, tokens: u64| {
            let said = message(number, role, tokens, "task_001");
            all.push(said.text());
            thread.push(said);
            number += 1;
            number
        };
        push(&mut thread, &mut all, User, 5);
        for [what, how] in happenings {
            let tokens = u64::from(how) + 1;
            match what % 8 {
                0..=3 => {
                    push(&mut thread, &mut all, Assistant, 3);
                    push(&mut thread, &mut all, Tool, tokens);
                }
                4 => { push(&mut thread, &mut all, User, tokens); }
                5 => { thread.fit(tokens * 4); }
                6 => {
                    let task = TaskId::new("task_001");
                    if let Some(cut) = thread.plan_compaction(tokens * 2, Some(&task)) {
                        let until = thread.messages()[cut.index - 1].message_id.clone();
                        let before = thread.tokens();
                        let stands = push(&mut Thread::default(), &mut Vec::new(), User, 0);
                        prop_assert!(thread.compact(&until, &cut.verbatim, summary(stands - 1, 2)));
                        prop_assert_eq!(thread.tokens(), before - cut.freed + 2);
                    }
                }
                _ => { thread.undo(); }
            }
            check(&thread.window());
            prop_assert_eq!(thread.tokens(), thread.messages().iter().map(|message| message.token_count).sum::<u64>());
        }
        let summed_up = thread.has_summary();
        while thread.undo() {}
        if summed_up && thread.dropped == 0 {
            prop_assert_eq!(texts(&thread.window()), all);
        }
    }
}

#[test]
fn a_summary_of_messages_already_dropped_still_comes_first() {
    let mut later = Thread::default();
    let until = MessageId::new("msg_00002");
    assert!(!later.compact(&until, &[], summary(6, 5)), "nothing is there that it could stand before");
    later.push(message(5, User, 10, "task_001"));
    assert!(later.compact(&until, &[], summary(6, 5)));
    assert_eq!(texts(later.messages()), ["summary 6", "5"]);
    assert!(later.has_summary() && later.undo());
    assert_eq!(texts(later.messages()), ["5"]);
}

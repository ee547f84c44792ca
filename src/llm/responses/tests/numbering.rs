//! Tests of streams whose final items number parts, items or IDs differently than the preceding deltas.

use super::answers::{added, calls, completed, delta, done, function, hear, words};
use super::*;

fn piece(item: u64, part: u64, text: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": item, "content_index": part, "delta": text})
}

fn part_done(item: u64, part: u64, text: &str) -> Value {
    json!({"type": "response.output_text.done", "output_index": item, "content_index": part, "text": text})
}

fn of_item(item: u64, id: &str, mut event: Value) -> Value {
    event["output_index"] = json!(item);
    event["item_id"] = json!(id);
    event
}

/// Returns a message item with this ID and these parts.
fn parts(id: &str, texts: &[&str]) -> Value {
    let content: Vec<Value> = texts.iter().map(|text| json!({"type": "output_text", "text": text})).collect();
    json!({"type": "message", "id": id, "role": "assistant", "content": content})
}

fn opened(index: u64, id: &str) -> Value {
    added(index, json!({"type": "message", "id": id, "content": []}))
}

fn streamed(deltas: &[Delta]) -> String {
    deltas.iter().filter_map(|delta| if let Delta::Text(text) = delta { Some(text.as_str()) } else { None }).collect()
}

fn answered(completion: &Completion) -> String {
    completion.content.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None }).collect()
}

/// Asserts that each stream produces `text` exactly once, both on the screen and in the response.
async fn say_once(text: &str, cases: Vec<(&str, Vec<Value>)>) {
    for (label, events) in cases {
        let (deltas, end) = hear(&events).await;
        let completion = end.unwrap();
        assert_eq!(streamed(&deltas), text, "streamed: {label}");
        assert_eq!(answered(&completion), text, "in the response: {label}");
        let texts = completion.content.iter().filter(|part| matches!(part, Part::Text { .. })).count();
        assert_eq!(texts, 1, "{label}: {:?}", completion.content);
    }
}

#[tokio::test]
async fn text_is_emitted_once_with_any_numbering_of_the_final_item() {
    let whole = || parts("a", &["Hello world"]);
    let list = || completed(json!([whole()]));
    say_once(
        "Hello world",
        vec![
            (
                "parts numbered from 1 in the deltas",
                vec![opened(0, "a"), piece(0, 1, "Hello "), piece(0, 1, "world"), done(0, whole()), list()],
            ),
            ("a part number that only deltas have", vec![opened(0, "a"), piece(0, 7, "Hello world"), done(0, whole()), list()]),
            (
                "the end of a part numbered differently from its deltas",
                vec![opened(0, "a"), piece(0, 0, "Hello world"), part_done(0, 1, "Hello world"), done(0, whole()), list()],
            ),
            (
                "the end of a part that has the missing rest",
                vec![opened(0, "a"), piece(0, 1, "Hello"), part_done(0, 0, "Hello world"), done(0, whole()), list()],
            ),
            (
                "two parts joined in the final item",
                vec![opened(0, "a"), piece(0, 0, "Hello "), piece(0, 1, "world"), done(0, whole()), list()],
            ),
            (
                "two parts joined in the end of a part",
                vec![
                    opened(0, "a"),
                    piece(0, 0, "Hello "),
                    piece(0, 1, "world"),
                    part_done(0, 0, "Hello world"),
                    done(0, whole()),
                    list(),
                ],
            ),
            (
                "one part divided in the final item",
                vec![opened(0, "a"), piece(0, 0, "Hello world"), done(0, parts("a", &["Hello", " world"])), list()],
            ),
            (
                "deltas for the first part only",
                vec![opened(0, "a"), piece(0, 0, "Hello "), done(0, parts("a", &["Hello ", "world"])), list()],
            ),
            (
                "deltas for the first part only, numbered from 1",
                vec![opened(0, "a"), piece(0, 1, "Hel"), done(0, parts("a", &["Hello ", "world"])), list()],
            ),
            ("no final item, the list at the end has it", vec![opened(0, "a"), piece(0, 1, "Hello "), list()]),
            ("the final item under another index", vec![opened(0, "a"), piece(0, 0, "Hello "), done(1, whole()), list()]),
            (
                "the final item under another index and id",
                vec![opened(0, "a"), piece(0, 0, "Hello "), done(1, parts("b", &["Hello world"])), list()],
            ),
            (
                "deltas under another index",
                vec![opened(0, "a"), of_item(1, "a", piece(1, 0, "Hello ")), done(0, whole()), list()],
            ),
            (
                "deltas under another index and id",
                vec![opened(0, "a"), of_item(1, "b", piece(1, 0, "Hello ")), done(0, whole()), list()],
            ),
            (
                "unannounced, the final item under another index",
                vec![piece(1, 0, "Hello "), done(0, parts("b", &["Hello world"])), list()],
            ),
            (
                "another id in every event",
                vec![
                    opened(0, "a"),
                    of_item(0, "b", piece(0, 0, "Hello ")),
                    done(0, parts("c", &["Hello world"])),
                    completed(json!([parts("d", &["Hello world"])])),
                ],
            ),
            (
                "one part as plain text",
                vec![
                    opened(0, "a"),
                    piece(0, 1, "Hello "),
                    done(0, json!({"type": "message", "id": "a", "content": "Hello world"})),
                    list(),
                ],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_additional_item_in_the_final_list_does_not_repeat_text() {
    let thought = json!({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "gAAA"});
    for id in ["a", "b"] {
        for finished in [true, false] {
            let mut events = vec![opened(0, "a"), piece(0, 0, "Hello world")];
            events.extend(finished.then(|| done(0, parts("a", &["Hello world"]))));
            events.push(completed(json!([thought, parts(id, &["Hello world"])])));
            say_once("Hello world", vec![(&format!("{id} {finished}"), events)]).await;
        }
    }
}

#[tokio::test]
async fn the_text_is_the_same_for_every_numbering_of_the_parts() {
    let texts = ["Größe", " ", "日本", "!", "!"];
    let all = texts.concat();
    let cuts = |text: &str| -> Vec<usize> { (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect() };
    for shift in [0, 1, 5] {
        for streamed_until in cuts(&all) {
            for joined_at in cuts(&all) {
                let mut events = vec![opened(0, "a")];
                let mut left = streamed_until;
                for (part, text) in (0..).zip(texts) {
                    let take = left.min(text.len());
                    left -= take;
                    if text.is_char_boundary(take) && take > 0 {
                        events.push(piece(0, part + shift, &text[..take]));
                    }
                }
                events.push(done(0, parts("a", &[&all[..joined_at], &all[joined_at..]])));
                events.push(completed(json!([])));
                say_once(&all, vec![(&format!("{shift} {streamed_until} {joined_at}"), events)]).await;
            }
        }
    }
}

#[tokio::test]
async fn a_different_final_item_replaces_the_streamed_text() {
    for part in [0, 1] {
        let events = [
            opened(0, "a"),
            piece(0, part, "Hello moon"),
            done(0, parts("a", &["Hello ", "world"])),
            completed(json!([parts("a", &["Hello ", "world"])])),
        ];
        let (deltas, end) = hear(&events).await;
        assert_eq!(streamed(&deltas), "Hello moon", "what was streamed is not streamed again");
        assert_eq!(answered(&end.unwrap()), "Hello world");
    }
}

#[tokio::test]
async fn text_repeated_by_the_model_is_kept() {
    let twice = || completed(json!([parts("a", &["ha"]), parts("b", &["ha"])]));
    let cases = [
        ("in one part", "haha", vec![opened(0, "a"), piece(0, 0, "ha"), piece(0, 0, "ha"), done(0, parts("a", &["haha"]))]),
        (
            "in two parts",
            "haha",
            vec![
                opened(0, "a"),
                piece(0, 0, "ha"),
                part_done(0, 0, "ha"),
                piece(0, 1, "ha"),
                part_done(0, 1, "ha"),
                done(0, parts("a", &["ha", "ha"])),
            ],
        ),
        (
            "in two parts, the second without deltas",
            "haha",
            vec![
                opened(0, "a"),
                piece(0, 0, "ha"),
                part_done(0, 0, "ha"),
                part_done(0, 1, "ha"),
                done(0, parts("a", &["ha", "ha"])),
            ],
        ),
        (
            "in a part that only the final item has",
            "haha",
            vec![opened(0, "a"), piece(0, 1, "ha"), done(0, parts("a", &["ha", "ha"]))],
        ),
        (
            "in two messages",
            "haha",
            vec![
                opened(0, "a"),
                piece(0, 0, "ha"),
                done(0, parts("a", &["ha"])),
                opened(1, "b"),
                piece(1, 0, "ha"),
                done(1, parts("b", &["ha"])),
                twice(),
            ],
        ),
        ("in two messages without deltas", "haha", vec![done(0, parts("a", &["ha"])), done(1, parts("b", &["ha"])), twice()]),
        ("in a message that only the end has", "haha", vec![done(0, parts("a", &["ha"])), twice()]),
        (
            "in two messages that are open at once",
            "haha",
            vec![
                opened(0, "a"),
                opened(1, "b"),
                piece(0, 0, "ha"),
                piece(1, 0, "ha"),
                done(1, parts("b", &["ha"])),
                done(0, parts("a", &["ha"])),
                twice(),
            ],
        ),
    ];
    for (label, text, mut events) in cases {
        events.push(json!({"type": "response.completed"}));
        let (deltas, end) = hear(&events).await;
        assert_eq!((streamed(&deltas), answered(&end.unwrap())), (text.to_owned(), text.to_owned()), "{label}");
    }
}

#[tokio::test]
async fn a_final_item_that_is_sent_again_with_another_number_is_the_same_item() {
    for again in [0, 1, 7] {
        let events = [
            opened(0, "a"),
            piece(0, 0, "hello"),
            done(0, parts("a", &["hello"])),
            done(again, parts("a", &["hello"])),
            json!({"type": "response.completed"}),
        ];
        let (deltas, end) = hear(&events).await;
        assert_eq!((streamed(&deltas), answered(&end.unwrap())), ("hello".to_owned(), "hello".to_owned()), "{again}");
    }
}

#[tokio::test]
async fn thinking_is_emitted_once_with_any_numbering_of_the_final_item() {
    let summary = |part: u64, text: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": part, "delta": text});
    let thought = |part: u64, text: &str| json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": part, "delta": text});
    let texts = |kind: &str, texts: &[&str]| texts.iter().map(|text| json!({"type": kind, "text": text})).collect::<Vec<_>>();
    let whole = |summary: &[&str], content: &[&str]| json!({"type": "reasoning", "id": "r", "summary": texts("summary_text", summary), "content": texts("reasoning_text", content)});
    let begun = || added(0, json!({"type": "reasoning", "id": "r", "summary": []}));
    let cases = [
        (
            "summaries from 1",
            "one\n\ntwo",
            vec![begun(), summary(1, "one"), summary(2, "two"), done(0, whole(&["one", "two"], &[]))],
        ),
        (
            "the second summary at the end only",
            "one\n\ntwo",
            vec![begun(), summary(1, "one"), done(0, whole(&["one", "two"], &[]))],
        ),
        ("thoughts from 1", "hmm", vec![begun(), thought(1, "hm"), done(0, whole(&[], &["hmm"]))]),
        ("another index", "hmm", vec![begun(), thought(0, "hm"), done(3, whole(&[], &["hmm"]))]),
        ("a summary that comes besides", "hmm", vec![begun(), thought(1, "hm"), done(0, whole(&["short"], &["hmm"]))]),
    ];
    for (label, expected, mut events) in cases {
        events.extend([opened(4, "a"), piece(4, 1, "Hello"), done(4, parts("a", &["Hello"])), completed(json!([]))]);
        let (deltas, end) = hear(&events).await;
        let thought: String = deltas
            .iter()
            .filter_map(|delta| if let Delta::Reasoning(text) = delta { Some(text.as_str()) } else { None })
            .collect();
        assert_eq!((thought.as_str(), streamed(&deltas).as_str()), (expected, "Hello"), "{label}");
        let completion = end.unwrap();
        let thoughts = completion.content.iter().filter(|part| matches!(part, Part::Reasoning { .. })).count();
        assert_eq!((thoughts, answered(&completion)), (1, "Hello".to_owned()), "{label}");
    }
}

#[tokio::test]
async fn calls_keep_their_arguments_with_any_item_numbering() {
    let arguments = |index: u64, piece: &str| delta("function_call_arguments", index, piece);
    let both = || vec![added(0, function("a", "")), added(1, function("b", ""))];
    let cases = [
        (
            "done numbered from 1",
            [
                both(),
                vec![
                    arguments(0, "{\"k\":1}"),
                    arguments(1, "{\"k\":2}"),
                    done(1, function("a", "{\"k\":1}")),
                    done(2, function("b", "{\"k\":2}")),
                ],
            ]
            .concat(),
        ),
        (
            "done in the other order",
            [
                both(),
                vec![
                    arguments(0, "{\"k\":1}"),
                    arguments(1, "{\"k\":2}"),
                    done(1, function("b", "{\"k\":2}")),
                    done(0, function("a", "{\"k\":1}")),
                ],
            ]
            .concat(),
        ),
        (
            "added numbered from 1, done from 0",
            vec![
                added(1, function("a", "")),
                arguments(1, "{\"k\":1}"),
                done(0, function("a", "{\"k\":1}")),
                added(2, function("b", "")),
                arguments(2, "{\"k\":2}"),
                done(1, function("b", "{\"k\":2}")),
            ],
        ),
        (
            "only the list at the end is whole",
            [
                both(),
                vec![
                    arguments(0, "{\"k\""),
                    arguments(1, "{\"k\""),
                    completed(json!([words(""), function("a", "{\"k\":1}"), function("b", "{\"k\":2}")])),
                ],
            ]
            .concat(),
        ),
    ];
    for (label, mut events) in cases {
        events.push(completed(json!([])));
        let completion = hear(&events).await.1.unwrap();
        let called: Vec<_> =
            calls(&completion).iter().map(|call| (call.tool_call_id.to_string(), call.arguments.clone())).collect();
        let expected = [("a", "{\"k\":1}"), ("b", "{\"k\":2}")].map(|(id, text)| (id.to_owned(), CallArguments::parse(text)));
        assert_eq!(called, expected, "{label}");
    }
}

#[tokio::test]
async fn the_summary_is_shown_for_thinking_that_only_the_final_item_contains() {
    let whole = json!({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "at length"}]});
    let (deltas, _) = hear(&[done(0, whole), completed(json!([]))]).await;
    assert_eq!(deltas, [Delta::Reasoning("short".to_owned())]);
}

//! Tests of commands with open input and output.

use super::*;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

#[tokio::test]
async fn a_piped_process_responds_until_its_stdin_closes() {
    for kind in KINDS {
        let line = "while read -r said; do echo \"heard $said\"; done; echo over; echo beside >&2";
        let mut piped = start_piped(kind(line), CancellationToken::new()).await.unwrap();
        let ending = tokio::spawn(piped.ending);
        let mut output = BufReader::new(piped.output).lines();
        for word in ["one", "two"] {
            piped.input.write_all(format!("{word}\n").as_bytes()).await.unwrap();
            assert_eq!(output.next_line().await.unwrap(), Some(format!("heard {word}")));
        }
        drop(piped.input);
        assert_eq!(output.next_line().await.unwrap().as_deref(), Some("over"));
        let mut errors = String::new();
        piped.errors.read_to_string(&mut errors).await.unwrap();
        assert_eq!((errors.as_str(), ending.await.unwrap().unwrap()), ("beside\n", End::Exited(0)));
    }
}

#[tokio::test]
async fn killing_a_piped_process_kills_its_children() {
    for kind in KINDS {
        let kill = CancellationToken::new();
        let piped = start_piped(kind("sleep 1000 & echo $!; cat > /dev/null"), kill.clone()).await.unwrap();
        let mut output = BufReader::new(piped.output);
        let mut line = String::new();
        output.read_line(&mut line).await.unwrap();
        kill.cancel();
        assert_eq!(piped.ending.await.unwrap(), End::Killed);
        // No process has the other end open any more.
        assert_eq!(output.read_line(&mut line).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn dropping_a_piped_process_kills_its_children() {
    for kind in KINDS {
        let piped = start_piped(kind("sleep 1000 & cat > /dev/null"), CancellationToken::new()).await.unwrap();
        let (mut output, mut rest) = (piped.output, Vec::new());
        drop(piped.ending);
        output.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty());
    }
}

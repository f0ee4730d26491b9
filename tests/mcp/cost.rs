//! What the tools cost every agent that is told of them.

use crate::agent::Agent;
use crate::support::World;

/// The whole list, as it is sent, in the vocabularies of two model families.
#[test]
fn the_list_of_tools_is_short() {
    let world = World::new();
    let tools = Agent::start(&world, "").tools();
    let names: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["claim", "renew", "finish", "next", "look", "mail"]);
    let text = serde_json::to_string(&tools).unwrap();
    for vocabulary in [tiktoken_rs::o200k_base(), tiktoken_rs::cl100k_base()] {
        let tokens = vocabulary.unwrap().encode_ordinary(&text).len();
        println!("{tokens} tokens, {} bytes", text.len());
        assert!(tokens < 2500, "{tokens} tokens: {text}");
        // A list that has nothing in it would be short, too.
        assert!(tokens > 500, "{tokens} tokens: {text}");
    }
}

#[test]
fn tools_say_what_they_do_to_the_world() {
    let world = World::new();
    for tool in Agent::start(&world, "").tools().tools {
        let hints = tool.annotations.as_ref().unwrap();
        assert_eq!(hints.read_only_hint, Some(tool.name == "look"), "{tool:?}");
        assert_eq!(hints.open_world_hint, Some(false), "{tool:?}");
        if tool.name != "look" {
            assert_eq!(hints.destructive_hint, Some(tool.name == "finish"), "{tool:?}");
            assert_eq!(
                hints.idempotent_hint,
                Some(["renew", "finish"].contains(&tool.name.as_ref())),
                "{tool:?}"
            );
        }
        assert_eq!(tool.input_schema["type"], "object", "{tool:?}");
        assert_eq!(tool.input_schema["additionalProperties"], false, "{tool:?}");
    }
}

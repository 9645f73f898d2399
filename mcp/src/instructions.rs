//! What every agent is told when it connects.

/// The server's instructions, and the body of the skill. Under 2 KB: longer
/// texts are cut by some clients.
pub const INSTRUCTIONS: &str = "\
Cambium gives you tools that call services on a person's behalf. You never see a credential: it \
is added to a tool's requests on their way out.

Finding a tool: call find_tool before anything else, and before you write one yourself. \
It searches every tool of the person, also those not in your list. A tool it finds can be run at \
once with run_tool {vendor, name, input}; you need not promote it and need not wait for your list \
to change. promote puts a tool you use often into your list, demote takes it out; neither loses \
anything.

Making a tool: when nothing fits, acquire {connectionId, goal} has one written and answers a job; \
acquire_status follows it. Or write a TypeScript module yourself: check_tool shows what is wrong with \
it and what it may do, publish_tool publishes it. read_tool_source shows existing modules as examples.

Reaching a service: when no connection reaches it, request_connection asks the person for one; \
after a 401 or 403, request_credential asks for its credential. Both answer a link for the person. \
Never ask for a secret yourself, and never put one into an argument.

Answers: each call of a tool answers {status, …}. `ok` carries the result. `dry_run` shows the \
writes that would have been sent; run_tool with dryRun asks nobody and sends nothing that \
changes data. `awaiting_approval` is not an error: the tool would change something, and a person \
must allow it first. Nothing was sent. Tell the person what you want to do and give them the link; \
when they have allowed it, make the same call again. `error` carries a code, a message and the \
next step.

A refusal is an answer. When a person or the policy refuses something, do not look for another way \
to do the same; say what was refused and ask the person.";

//! The list of questions tells them apart, a question can be put aside, and what
//! a no or an unused *once* does is said where it can be taken back.

use super::house::House;
use cambium_proxy::{AskId, Effect};

#[tokio::test]
async fn b089_the_list_shows_the_first_of_each_body_and_how_long_it_waits() {
    let (house, id) = House::with_ask("told-apart", Effect::Write).await;
    let (cookie, _) = house.log_in().await;
    let list = house.get("/asks", &cookie).await.body;
    let row = list.split(&format!("/asks/{id}")).nth(1).unwrap().split("</tr>").next().unwrap();
    assert!(row.contains("ecila"), "{row}");
    assert!(row.contains("just now"), "{row}");
    assert!(!list.contains('\u{202e}') && !list.contains("<img src=x>"), "nothing hides: {row}");
}

#[tokio::test]
async fn b059_a_question_is_put_aside_on_its_page() {
    let (house, id) = House::with_ask("aside", Effect::Destroy).await;
    let (cookie, form) = house.log_in().await;
    let path = format!("/asks/{id}");
    assert!(house.get(&path, &cookie).await.body.contains("value=\"dismiss\""));
    assert_eq!(house.post(&path, &cookie, "form=no&answer=dismiss").await.status, 403);
    assert_eq!(house.state(&id).await, "open");
    let dismiss = format!("form={form}&answer=dismiss");
    assert_eq!(house.post(&path, &cookie, &dismiss).await.status, 303, "no passphrase is needed");
    assert_eq!(house.state(&id).await, "dismissed");
    let page = house.get(&path, &cookie).await.body;
    assert!(page.contains("put aside, neither allowed nor denied"));
    assert!(!page.contains("Withdraw the no"), "no no stands");
    assert!(house.engine.standing_answers().await.unwrap().is_empty());
    assert_eq!(house.post(&path, &cookie, &dismiss).await.status, 409, "told, as any later answer");
}

#[tokio::test]
async fn b059_a_no_says_what_it_does_and_is_taken_back_where_it_was_given() {
    let (house, id) = House::with_ask("a-no", Effect::Write).await;
    let (cookie, form) = house.log_in().await;
    let path = format!("/asks/{id}");
    house.post(&path, &cookie, &format!("form={form}&answer=deny")).await;
    let page = house.get(&path, &cookie).await.body;
    assert!(page.contains("not only this request"), "{page}");
    assert!(page.contains("cambium approvals withdraw ") && page.contains(" acme pay"), "{page}");
    let agent = house.engine.ask(&AskId::new(id)).await.unwrap().agent;
    assert!(page.contains(&format!("action=\"/agents/{agent}\"")));
    let withdraw = format!("form={form}&do=withdraw&tool=acme__pay");
    let agents_page = format!("/agents/{agent}");
    assert_eq!(house.post(&agents_page, &cookie, &withdraw).await.status, 303);
    assert!(!house.get(&path, &cookie).await.body.contains("not only this request"));
}

#[tokio::test]
async fn b065_an_unused_once_is_on_the_agents_page_with_its_request() {
    let (house, id) = House::with_ask("unused", Effect::Write).await;
    let (cookie, form) = house.log_in().await;
    house.post(&format!("/asks/{id}"), &cookie, &format!("form={form}&answer=once")).await;
    assert!(house.get("/asks", &cookie).await.body.contains("allowed once, not used yet"));
    let agent = house.engine.ask(&AskId::new(id.clone())).await.unwrap().agent;
    let path = format!("/agents/{agent}");
    let page = house.get(&path, &cookie).await.body;
    assert!(page.contains("allowed once, not used yet:"), "{page}");
    assert!(page.contains("POST api.acme.test/orders?to=") && page.contains(&id), "{page}");
    let withdraw = format!("form={form}&do=withdraw&tool=acme__pay");
    assert_eq!(house.post(&path, &cookie, &withdraw).await.status, 303);
    assert!(!house.get(&path, &cookie).await.body.contains("not used yet"));
    let list = house.get("/asks", &cookie).await.body;
    assert!(list.contains("allowed once, ended without a use"), "{list}");
}

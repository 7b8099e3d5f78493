import { Route, Switch } from "wouter";
import { useScope } from "../../api/query";
import { EditContact, NewContact } from "./ContactForm";
import ContactPage from "./ContactPage";
import Contacts from "./Contacts";
import { Import } from "./Import";
import { Merge } from "./Merge";

/** The pages below /contacts. */
export default function ContactPages() {
  const write = useScope("contacts:write");
  return (
    <Switch>
      <Route path="/contacts"><Contacts /></Route>
      {write && <Route path="/contacts/new"><NewContact /></Route>}
      {write && <Route path="/contacts/import"><Import /></Route>}
      {write && <Route path="/contacts/:id/edit">{({ id }) => <EditContact key={id} id={id} />}</Route>}
      {write && <Route path="/contacts/:id/merge">{({ id }) => <Merge key={id} id={id} />}</Route>}
      <Route path="/contacts/:id">{({ id }) => <ContactPage key={id} id={id ?? ""} />}</Route>
    </Switch>
  );
}

// vendors.mjs VENDOR ADDRESS: asks a stand-in for a vendor of CRM systems with the vendor's own client, or the one most used, and
// prints what came back, a JSON object. The stand-in holds every request against the description that soniq is held against.
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
const [vendor, address] = process.argv.slice(2);

const asks = {
  async pipedrive() {
    const { Configuration, PersonsApi, ActivitiesApi } = require('pipedrive/v2');
    const v1 = require('pipedrive/v1');
    const config = new Configuration({ accessToken: 'token', basePath: address + '/api/v2' });
    const persons = new PersonsApi(config), activities = new ActivitiesApi(config);
    const notes = new v1.NotesApi(new v1.Configuration({ accessToken: 'token', basePath: address + '/api/v1' }));
    const found = await persons.searchPersons({ term: '2079460018', fields: 'phone', exact_match: false, limit: 50 });
    const person = { name: 'Ada', phones: [{ value: '+442079460018', primary: true, label: 'work' }], emails: [{ value: 'ada@example.com' }] };
    await persons.addPerson({ AddPersonRequest: person });
    const read = await persons.getPerson({ id: 901 });
    await persons.updatePerson({ id: 901, UpdatePersonRequest: person });
    await notes.addNote({ AddNoteRequest: { content: 'A note', person_id: 901 } });
    await notes.getNotes({ person_id: 901, limit: 10 });
    const activity = { subject: 'Call', type: 'call', done: true, due_date: '2026-01-02', due_time: '09:30', duration: '00:05', note: 'words',
      participants: [{ person_id: 901, primary: true }] };
    await activities.addActivity({ AddActivityRequest: activity });
    await activities.updateActivity({ id: 901, UpdateActivityRequest: activity });
    await activities.getActivities({ limit: 10 });
    return { name: found.data.items[0].item.name, phone: found.data.items[0].item.phones[0], id: read.data.id };
  },
  async hubspot() {
    const { Client } = require('@hubspot/api-client');
    const c = new Client({ accessToken: 'token', basePath: address }).crm.objects;
    const found = await c.searchApi.doSearch('contacts', { limit: 10, properties: ['firstname', 'phone'],
      filterGroups: [{ filters: [{ propertyName: 'phone', operator: 'EQ', value: '+442079460018' }] }, { filters: [{ propertyName: 'mobilephone', operator: 'EQ', value: '+442079460018' }] }] });
    const made = await c.basicApi.create('contacts', { properties: { firstname: 'Ada', phone: '+442079460018', email: 'ada@example.com' }, associations: [] });
    await c.basicApi.update('contacts', '901', { properties: { company: 'Analytical' } });
    const call = { properties: { hs_timestamp: '1767312000000', hs_call_title: 'Call', hs_call_body: 'words', hs_call_direction: 'INBOUND', hs_call_duration: '5000',
      hs_call_status: 'COMPLETED', hs_call_from_number: '+442079460018', hs_call_to_number: '+12125550100' },
      associations: [{ to: { id: '512' }, types: [{ associationCategory: 'HUBSPOT_DEFINED', associationTypeId: 194 }] }] };
    await c.basicApi.create('calls', call);
    await c.basicApi.update('calls', '901', { properties: { hs_call_body: 'more words' } });
    await c.basicApi.create('notes', { properties: { hs_timestamp: '1767312000000', hs_note_body: 'A note' },
      associations: [{ to: { id: '512' }, types: [{ associationCategory: 'HUBSPOT_DEFINED', associationTypeId: 202 }] }] });
    return { name: found.results[0].properties.firstname, phone: found.results[0].properties.phone, id: made.id };
  },
  async salesforce() {
    const jsforce = require('jsforce');
    const c = new jsforce.Connection({ instanceUrl: address, accessToken: 'token', version: '61.0' });
    const found = await c.search('FIND {2079460018} IN PHONE FIELDS RETURNING Contact(Id, Name, Phone) LIMIT 20');
    const made = await c.sobject('Contact').create({ FirstName: 'Ada', LastName: 'Lovelace', Phone: '+442079460018' });
    await c.sobject('Contact').update({ Id: '003D000000QOzVUIA1', Title: 'Countess' });
    await c.query("SELECT Id FROM Task WHERE CallObject = 'call_1' LIMIT 1");
    await c.sobject('Task').create({ Subject: 'Call', Status: 'Completed', TaskSubtype: 'Call', CallType: 'Inbound', CallDurationInSeconds: 5, CallObject: 'call_1',
      ActivityDate: '2026-01-02', WhoId: '003D000000QOzVUIA1' });
    await c.sobject('Task').update({ Id: '00TD000000M7fyIMAR', Description: 'words' });
    const person = found.searchRecords.find((r) => r.attributes.type === 'Contact');
    return { name: person.Name, phone: person.Phone, id: made.id };
  },
  async zendesk() {
    const { createClient } = require('node-zendesk');
    const c = createClient({ endpointUri: address + '/api/v2', token: 'token', username: 'me@example.com', oauth: true });
    const found = await c.users.search({ query: 'phone:"+442079460018"' });
    const user = { user: { name: 'Ada Lovelace', phone: '+442079460018', email: 'ada@example.com' } };
    const made = await c.users.createOrUpdate(user);
    await c.users.update(512, user);
    const ticket = { ticket: { requester_id: 512, subject: 'Call', external_id: 'call_1', comment: { body: 'words', public: false } } };
    await c.tickets.update(901, ticket);
    const list = Array.isArray(found) ? found : found.result ?? found.users;
    return { name: list[0].name, phone: list[0].phone, id: (made.result ?? made).id };
  },
  async dynamics() {
    const { DynamicsWebApi } = require('dynamics-web-api');
    const c = new DynamicsWebApi({ serverUrl: address, dataApi: { version: '9.2' }, onTokenRefresh: async () => ({ accessToken: 'token' }) });
    const id = '00000000-0000-0000-0000-000000000512';
    const found = await c.retrieveMultiple({ collection: 'contacts', select: ['fullname', 'telephone1', 'mobilephone'], top: 20,
      filter: "telephone1 eq '+442079460018' or mobilephone eq '+442079460018'", includeAnnotations: 'OData.Community.Display.V1.FormattedValue' });
    const at = `/contacts(${id})`;
    await c.update({ collection: 'contacts', key: id, data: { firstname: 'Ada', telephone1: '+442079460018' } });
    await c.upsert({ collection: 'annotations', key: id, data: { subject: 'Note', notetext: 'A note', 'objectid_contact@odata.bind': at } });
    await c.upsert({ collection: 'phonecalls', key: id, data: { subject: 'Call', description: 'words', directioncode: true, actualdurationminutes: 1,
      phonenumber: '+442079460018', 'regardingobjectid_contact@odata.bind': at,
      phonecall_activity_parties: [{ participationtypemask: 1, 'partyid_contact@odata.bind': at }] } });
    return { name: found.value[0].fullname, phone: found.value[0].telephone1, id: found.value[0].contactid };
  },
};

const told = await asks[vendor]();
console.log(JSON.stringify(told));
process.exit(0);

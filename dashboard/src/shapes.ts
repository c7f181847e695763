// Answers of the service that more than one page shows; only the fields that are shown.

export interface Memory {
  memory_id: string;
  content: string;
  memory_type: string;
  attribute: string | null;
  tier: string;
  scope: string;
  user_id: string | null;
  agent_id: string | null;
  session_id: string | null;
  project_id: string | null;
  source: string;
  source_id: string | null;
  evidence: string[];
  speaker: string | null;
  said_at: string | null;
  confidence: number;
  status: string;
  superseded_by: string | null;
  conflicts_with: string[];
  valid_from: string | null;
  valid_to: string | null;
  expires_at: string | null;
  embedding_model: string;
  creator: string | null;
  use_count: number;
  last_used_at: string | null;
  version: number;
  create_time: string;
  update_time: string;
}

export interface Message {
  message_id: string;
  session_id: string;
  agent_id: string;
  user_id: string;
  role: string;
  content: string;
  content_parts: Record<string, unknown>[] | null;
  tool_calls: Record<string, unknown>[] | null;
  tool_call_id: string | null;
  name: string | null;
  sequence_no: number;
  create_time: string;
}

export interface Session {
  session_id: string;
  agent_id: string;
  user_id: string;
  project_id: string | null;
  session_name: string | null;
  session_type: string | null;
  status: string;
  end_time: string | null;
  memory_enabled: boolean;
  injection_enabled: boolean;
  last_sequence_no: number;
  last_message_time: string | null;
  last_extracted_seq: number;
  forked_from: { session_id: string; sequence_no: number } | null;
  version: number;
  create_time: string;
}

export interface Run {
  extraction_id: string;
  trigger: string;
  status: string;
  error_code: string | null;
  session_id: string | null;
  first_sequence_no: number | null;
  last_sequence_no: number | null;
  messages: number;
  extractor: string;
  model: string | null;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  latency_ms: number;
  proposals: number;
  outcomes: Record<string, number>;
  create_time: string;
}

export interface Receipt {
  kind: string;
  id: string;
  deleted: Record<string, number>;
  erasure_id: string | null;
}

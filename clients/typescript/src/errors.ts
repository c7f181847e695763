/** The errors of the client; every one is a `KememError` with a stable `code`. */

/** Base of all errors of the client. None holds a key or content that was sent. */
export class KememError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** The address or the key is missing or malformed; nothing was sent. */
export class ConfigurationError extends KememError {
  constructor(message: string) {
    super("configuration", message);
  }
}

/** The service was not reached, or hung up; the request may still have had its effect. */
export class ConnectionFailedError extends KememError {
  constructor(message: string, options?: ErrorOptions) {
    super("connection_failed", message, options);
  }
}

/** Not done within the given time; it may still be done. */
export class TimedOutError extends KememError {
  constructor(message: string) {
    super("timed_out", message);
  }
}

/** Something answers at the address, but not as KeMem does. */
export class UnexpectedAnswerError extends KememError {
  constructor(message: string) {
    super("unexpected_answer", message);
  }
}

/** The export is cut off or altered. */
export class BrokenExportError extends KememError {
  constructor(message: string, options?: ErrorOptions) {
    super("broken_export", message, options);
  }
}

/** The job failed for good (status `dead`) or was cancelled; `code` says why. */
export class JobFailedError extends KememError {
  constructor(
    readonly job_id: string,
    readonly status: string,
    code: string | null | undefined,
    readonly detail: string | null | undefined,
  ) {
    super(code ?? status, `The job ${job_id} is ${status}${detail ? `: ${detail}` : ""}.`);
  }
}

/** A problem document, with further members such as `reasons`. */
export interface Problem {
  code: string;
  title?: string;
  detail?: string;
  request_id?: string;
  errors?: { location: string[]; detail: string }[] | null;
  [member: string]: unknown;
}

/** The service refused the request; branch on `code`. */
export class ApiError extends KememError {
  readonly title: string;
  readonly detail: string;
  /** Finds the request in the log of the service. */
  readonly request_id: string | undefined;
  /** All invalid fields. */
  readonly errors: { location: string[]; detail: string }[];

  constructor(
    /** HTTP status. */
    readonly status: number,
    /** The whole problem document. */
    readonly problem: Problem,
    /** Seconds after which to try again. */
    readonly retry_after: number | undefined,
  ) {
    const { code, title = "", detail = "", request_id, errors } = problem;
    const faults = (errors ?? []).map((one) => ` ${one.location.join(".")}: ${one.detail}.`);
    const request = request_id ? ` (request ${request_id})` : "";
    super(code, `${status} ${code}: ${detail || title}${faults.join("")}${request}`);
    this.title = title;
    this.detail = detail;
    this.request_id = request_id;
    this.errors = errors ?? [];
  }
}

/** 401: the key is missing, unknown, expired or revoked. */
export class UnauthenticatedError extends ApiError {}
/** 403: the key, or the acting user, may not do this. */
export class ForbiddenError extends ApiError {}
/** 404: it does not exist, or belongs to another tenant or user. */
export class NotFoundError extends ApiError {}
/** 409: the state forbids it: a duplicate, a newer version, a missing `confirm`. */
export class ConflictError extends ApiError {}
/** 422: invalid fields, see `errors`; or a memory was rejected, see `problem.reasons`. */
export class UnprocessableError extends ApiError {}
/** 429: a limit is reached, for `retry_after` seconds. */
export class RateLimitedError extends ApiError {}
/** 502, 503, 504: the service, or something it needs, does not work for now. */
export class UnavailableError extends ApiError {}

const FAMILIES: Record<number, typeof ApiError> = {
  401: UnauthenticatedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  422: UnprocessableError,
  429: RateLimitedError,
  502: UnavailableError,
  503: UnavailableError,
  504: UnavailableError,
};

/** The error for an answer of status 400 or above. Text that is no problem document is left out:
 * a proxy may have quoted the request. */
export function errorOf(status: number, body: unknown, retryAfter?: number): ApiError {
  const Family = FAMILIES[status] ?? ApiError;
  return new Family(status, isProblem(body) ? body : { code: "http_error" }, retryAfter);
}

function isProblem(body: unknown): body is Problem {
  return typeof body === "object" && body !== null && "code" in body && typeof body.code === "string";
}
